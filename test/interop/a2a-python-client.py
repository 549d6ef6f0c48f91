"""Drives an A2A agent with the official Python client; prints one line of JSON for each thing that happened.

usage: a2a-python-client.py <agent url> <api key> <JSONRPC|HTTP+JSON>
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)


def say(event: str, **detail) -> None:
    print(json.dumps({"event": event, **detail}), flush=True)


def request(text: str, immediately: bool = False) -> SendMessageRequest:
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=immediately)
    )


def kind(response) -> str:
    return response.WhichOneof("payload")


def state(task) -> str:
    return TaskState.Name(task.status.state)


async def main(url: str, key: str, binding: str) -> None:
    http = httpx.AsyncClient(headers={"X-API-Key": key}, timeout=30)

    async def client(streaming: bool):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=[binding],
            use_client_preference=True,
        )
        return await ClientFactory(config).create_from_url(url)

    plain = await client(False)
    say("discovered")

    async for response in plain.send_message(request("hello")):
        task = response.task
        say("answered", state=state(task), text=task.artifacts[0].parts[0].text)

    streaming = await client(True)
    kinds = [kind(response) async for response in streaming.send_message(request("stream this"))]
    say("streamed", kinds=kinds)

    stream = streaming.send_message(request("slow"))
    first = await anext(stream)
    task_id = first.task.id
    await stream.aclose()
    say("cut", id=task_id)

    kinds = []
    async for response in streaming.subscribe(SubscribeToTaskRequest(id=task_id)):
        kinds.append(kind(response))
        if len(kinds) == 1:
            say("subscribed")
    say("resubscribed", kinds=kinds)

    got = await plain.get_task(GetTaskRequest(id=task_id))
    say("got", state=state(got))

    listed = await plain.list_tasks(ListTasksRequest(page_size=2))
    say("listed", total=listed.total_size, page=len(listed.tasks), more=listed.next_page_token != "")

    async for response in plain.send_message(request("never", immediately=True)):
        cancelled = await plain.cancel_task(CancelTaskRequest(id=response.task.id))
        say("cancelled", state=state(cancelled))
    await http.aclose()


asyncio.run(main(*sys.argv[1:4]))
