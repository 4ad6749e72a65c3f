#!/usr/bin/env python3
"""What the attacks are made with says and counts what it should."""

import socket
import struct
import unittest

import hpack

import api
import wire
from server import conservation


class WireTest(unittest.TestCase):
    def setUp(self):
        ours, self.peer = socket.socketpair()
        self.connection = wire.Connection(ours, window=100)
        self.sent()

    def tearDown(self):
        self.connection.close()
        self.peer.close()

    def sent(self):
        """(kind, flags, stream, payload) of the frames sent since."""
        data = self.peer.recv(1 << 20).removeprefix(wire.PREFACE)
        frames = []
        while data:
            size = int.from_bytes(data[:3], "big")
            kind, flags, number = struct.unpack(">BBI", data[3:9])
            frames.append((kind, flags, number, data[9:9 + size]))
            data = data[9 + size:]
        return frames

    def receive(self, *frames):
        self.peer.sendall(b"".join(frames))
        self.connection.pump(1)

    def test_a_frame_has_its_length_kind_flags_and_stream(self):
        self.assertEqual(wire.frame(3, 1, 5, b"ab"),
                         b"\0\0\2\3\1\0\0\0\5ab")

    def test_headers_are_read_by_another_decoder(self):
        block = wire.header_block([("a", "b"), ("long", "x" * 300)])
        self.assertEqual(hpack.Decoder().decode(block),
                         [("a", "b"), ("long", "x" * 300)])

    def test_a_request_is_headers_and_one_message(self):
        self.connection.open("/a/b", b"xyz")
        (kind, flags, number, _), data = self.sent()
        self.assertEqual((kind, flags, number), (wire.HEADERS, 4, 1))
        self.assertEqual(data, (wire.DATA, 1, 1, b"\0\0\0\0\3xyz"))

    def test_an_answer_is_cut_into_messages(self):
        stream = self.connection.open("/a/b", b"")
        encode = hpack.Encoder().encode
        self.receive(
            wire.frame(wire.HEADERS, 4, 1, encode([(":status", "200")])),
            wire.frame(wire.DATA, 0, 1, b"\0\0\0\0\2ab\0\0\0"),
            wire.frame(wire.DATA, 0, 1, b"\0\1c"),
            wire.frame(wire.HEADERS, 5, 1, encode([
                ("grpc-status", "8"), ("grpc-message", "full")])))
        self.assertEqual(list(stream.messages), [b"ab", b"c"])
        self.assertTrue(stream.ended)
        status = api.Status(stream)
        self.assertEqual((status.code, status.text), (8, "full"))

    def test_no_more_is_sent_than_the_peer_allows(self):
        stream = self.connection.open("/a/b")
        self.receive(wire.settings(**{"4": 10}))
        self.sent()
        self.connection.write(stream, b"0123456789abcdef", ends=True)
        self.assertEqual(self.sent(), [(wire.DATA, 0, 1, b"0123456789")])
        self.receive(wire.window_update(1, 100))
        self.assertEqual(self.sent(), [(wire.DATA, 1, 1, b"abcdef")])

    def test_settings_are_acknowledged_before_their_window_is_used(self):
        stream = self.connection.open("/a/b")
        self.receive(wire.settings(**{"4": 0}))
        self.connection.write(stream, b"ab")
        self.sent()
        self.receive(wire.settings(**{"4": 2}))
        self.assertEqual([f[0] for f in self.sent()],
                         [wire.SETTINGS, wire.DATA])

    def test_a_stream_that_does_not_read_gets_no_window(self):
        reader, other = (self.connection.open("/a/b") for _ in range(2))
        other.reads = False
        self.sent()
        self.receive(*(wire.frame(wire.DATA, 0, s.number, b"\0\0")
                       for s in (reader, other)))
        self.assertEqual([f[2] for f in self.sent()], [0, 1, 0])

    def test_the_peers_end_is_an_error_that_tells_its_goaway(self):
        self.peer.sendall(wire.frame(wire.GOAWAY, 0, 0, bytes(7) + b"\x0bhm"))
        self.peer.close()
        with self.assertRaisesRegex(wire.Closed, "11.*hm"):
            self.connection.wait(lambda: False, 1)


class ConservationTest(unittest.TestCase):
    def test_a_law_that_does_not_hold_is_named(self):
        status = api.message("GetServerStatusResponse", turnsStarted=3,
                             turnsActive=1, turnsFinished={"OK": 2})
        self.assertEqual(conservation(status), "")
        status.turns_active = 0
        self.assertEqual(conservation(status), "turns 3 != 2")


if __name__ == "__main__":
    unittest.main()
