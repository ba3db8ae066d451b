"""The tests' own servers, which the fault tests rely on."""

import os

import psycopg2
import pytest
import redis

from tests.servers import PostgresServer, RedisServer

pytestmark = pytest.mark.slow


class TestPostgres:
    def test_keeps_data_and_address_over_stop_kill_and_start(self):
        with PostgresServer(durable=True) as server:
            with psycopg2.connect(server.url) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE TABLE kept (number INTEGER)")
            connection.close()
            for end in (server.stop, server.kill):
                end()
                assert not server.answers()
                server.start()
            with psycopg2.connect(server.url) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM kept")
            connection.close()

    def test_can_be_frozen_and_leaves_nothing(self):
        with PostgresServer() as server:
            server.pause()
            assert not server.answers()
            server.resume()
            assert server.answers()
            pid, folder = server.process.pid, server.folder
        assert not folder.exists()
        with pytest.raises(ProcessLookupError):
            os.killpg(pid, 0)


class TestRedis:
    def test_can_be_emptied_and_frozen(self):
        with RedisServer() as server, redis.Redis.from_url(server.url, socket_timeout=1) as client:
            client.set("key", "value")
            server.flushall()
            assert client.get("key") is None
            server.pause()
            with pytest.raises(redis.RedisError):
                client.get("key")
            server.resume()
            assert server.answers()
