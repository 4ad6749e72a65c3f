import pytest
from server_process import ServerProcess

from txl_client import Client


@pytest.fixture(scope="session")
def server():
    process = ServerProcess()
    yield process
    process.close()


@pytest.fixture
def client(server):
    with Client(server.address) as made:
        yield made
