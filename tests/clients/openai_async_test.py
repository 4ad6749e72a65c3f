"""OpenAI's asynchronous client: many streams at once, and one that is left."""

import asyncio
import unittest

import openai

from served import ServedTest

MODEL = "shakespeare"


class AsyncCompletions(ServedTest):

    def run_with_client(self, use):
        async def run():
            async with openai.AsyncOpenAI(base_url=self.server.v1,
                                          api_key="any") as client:
                return await use(client)
        return asyncio.run(run())

    @staticmethod
    async def text_of(client, seed):
        stream = await client.completions.create(
            model=MODEL, prompt="ROMEO:", seed=seed, max_tokens=40,
            stream=True)
        return "".join([c.choices[0].text async for c in stream])

    def alone(self, seed):
        return self.complete(prompt="ROMEO:", seed=seed,
                             max_tokens=40)["choices"][0]["text"]

    def test_sixteen_streams_at_once_are_those_of_each_alone(self):
        async def all_at_once(client):
            return await asyncio.gather(
                *(self.text_of(client, seed) for seed in range(16)))
        texts = self.run_with_client(all_at_once)
        self.assertEqual(texts, [self.alone(seed) for seed in range(16)])

    def test_streams_one_after_the_other_share_a_connection(self):
        """A stream whose end comes late costs its connection."""
        peers = set()

        async def note(response):
            stream = response.extensions["network_stream"]
            peers.add(stream.get_extra_info("client_addr"))

        async def in_turn():
            http = openai.DefaultAsyncHttpxClient(
                event_hooks={"response": [note]})
            async with openai.AsyncOpenAI(base_url=self.server.v1,
                                          api_key="any",
                                          http_client=http) as client:
                return [await self.text_of(client, seed) for seed in range(5)]
        texts = asyncio.run(in_turn())
        self.assertEqual(len(texts), 5)
        self.assertEqual(len(peers), 1, peers)

    def test_a_task_that_is_cancelled_ends_its_turn(self):
        async def leave(client):
            stream = await client.completions.create(
                model=MODEL, prompt="ROMEO:", max_tokens=4096, stream=True)

            async def read():
                async for _ in stream:
                    pass
            task = asyncio.create_task(read())
            await asyncio.to_thread(self.server.wait_for_turns, 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await stream.close()
            await asyncio.to_thread(self.server.wait_for_turns, 0)
        self.run_with_client(leave)
        self.assertEqual(self.server.status()["turns_finished"]["CANCELLED"],
                         1)

    def test_an_answer_that_is_awaited_no_longer_ends_its_turn(self):
        async def leave(client):
            task = asyncio.create_task(client.completions.create(
                model=MODEL, prompt="ROMEO:", max_tokens=4096))
            await asyncio.to_thread(self.server.wait_for_turns, 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self.server.wait_for_turns, 0)
        self.run_with_client(leave)


if __name__ == "__main__":
    unittest.main()
