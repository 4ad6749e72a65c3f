from relay import MessageCounter


def frame(kind, stream, payload):
    return (len(payload).to_bytes(3, "big") + bytes([kind, 0])
            + stream.to_bytes(4, "big") + payload)


def message(text):
    return b"\0" + len(text).to_bytes(4, "big") + text


def test_messages_are_counted_in_whatever_pieces_they_come():
    data = (frame(4, 0, b"\0" * 6) + frame(0, 1, message(b"a"))
            + frame(1, 1, b"xyz") + frame(0, 1, message(b"b") + message(b"c")))
    for size in range(1, len(data) + 1):
        counter = MessageCounter()
        for start in range(0, len(data), size):
            piece = data[start:start + size]
            assert counter.feed(piece, -1) == len(piece)
        assert counter.messages == 3


def test_a_message_may_be_parted_over_frames():
    whole = message(b"hello")
    counter = MessageCounter()
    counter.feed(frame(0, 3, whole[:4]) + frame(0, 3, whole[4:7]), -1)
    assert counter.messages == 0
    counter.feed(frame(0, 3, whole[7:]), -1)
    assert counter.messages == 1


def test_nothing_passes_behind_the_limit():
    first, second = frame(0, 1, message(b"a")), frame(0, 1, message(b"b"))
    assert MessageCounter().feed(first + second, 1) == len(first)
    counter = MessageCounter()
    counter.feed(first[:5], 1)
    assert counter.feed(first[5:] + second, 1) == len(first) - 5
