import pytest
from server_process import ServerProcess

from txl_client import Client


@pytest.fixture(scope="session")
def server():
    process = ServerProcess()
    yield process
    ended = process.process.poll()
    process.close()
    assert ended is None, f"the server ended by itself: {ended}"


@pytest.fixture
def client(server):
    with Client(server.address) as made:
        yield made
