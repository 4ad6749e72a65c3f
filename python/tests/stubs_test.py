"""The generated stubs live in the package, and nowhere else."""

import importlib
import pathlib
import pkgutil

import pytest
from google.protobuf import descriptor_pool
from google.rpc import error_details_pb2, status_pb2

import txl_client
import txl_client._proto as stubs

PROTOS = pathlib.Path(__file__).parents[2] / "proto/txl/v1"
FOLDER = pathlib.Path(stubs.__file__).parent
MODULES = [module.name for module in pkgutil.iter_modules(stubs.__path__)]


def test_every_service_and_message_file_has_its_stubs():
    assert sorted(MODULES) == sorted(
        f"{file.stem}_{kind}" for file in PROTOS.glob("*.proto")
        for kind in ("pb2", "pb2_grpc"))
    assert all((FOLDER / f"{name}.pyi").exists() for name in MODULES
               if name.endswith("_pb2"))


@pytest.mark.parametrize("name", MODULES)
def test_stubs_import_their_neighbours_from_the_package(name):
    importlib.import_module(f"txl_client._proto.{name}")
    for file in FOLDER.glob(f"{name}.py*"):
        assert "from txl.v1" not in file.read_text()


def test_there_is_no_package_of_the_proto_s_name():
    with pytest.raises(ImportError):
        importlib.import_module("txl.v1")


def test_messages_of_google_rpc_are_those_of_their_own_package():
    # Two copies of one file would not fit into protobuf's only pool.
    for module in (error_details_pb2, status_pb2):
        assert "txl_client" not in module.__file__
        name = module.DESCRIPTOR.name
        assert descriptor_pool.Default().FindFileByName(name) is not None


def test_the_package_tells_type_checkers_that_it_is_typed():
    folder = pathlib.Path(txl_client.__file__).parent
    assert (folder / "py.typed").exists()
