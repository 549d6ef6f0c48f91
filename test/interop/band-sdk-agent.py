"""One agent on the Python SDK, as it comes from the registry.

Settings come from the environment (BAND_REST_URL, BAND_WS_URL, AGENT_ID, API_KEY, CONFLICT_POLICY). Everything that
happens is one line of JSON on standard output; a line "stop" on standard input stops the agent in order.
"""

import asyncio
import json
import os
import sys

from band.agent import Agent
from band.core.exceptions import AgentAlreadyRunningError
from band.core.simple_adapter import SimpleAdapter
from band.core.types import ConflictPolicy
from band.runtime.agentconfig import AgentConfig
from band.runtime.contacts import ContactEventConfig, ContactEventStrategy
from band.runtime.sessionconfig import SessionConfig


def tell(event, **details):
    print(json.dumps({"event": event, **details}), flush=True)


class Adapter(SimpleAdapter):
    def __init__(self):
        super().__init__()
        self.seen = set()

    async def on_started(self, agent_name, agent_description):
        await super().on_started(agent_name, agent_description)
        tell("started", name=agent_name)

    async def on_message(
        self, msg, tools, history, participants_msg, contacts_msg, *, is_session_bootstrap, room_id
    ):
        tell(
            "run",
            room=room_id,
            message=msg.id,
            content=msg.content,
            sender=msg.sender_id,
            bootstrap=is_session_bootstrap,
            history=len(history.raw),
        )
        try:
            if "slow" in msg.content and msg.id not in self.seen:
                self.seen.add(msg.id)
                await asyncio.sleep(60)
            if "fail once" in msg.content and msg.id not in self.seen:
                self.seen.add(msg.id)
                raise RuntimeError("this went wrong on purpose")
            if "fail always" in msg.content:
                raise RuntimeError("this went wrong on purpose")
            await tools.send_event("thinking about it", "thought")
            await tools.send_message(f"echo: {msg.content}", [msg.sender_id])
        except asyncio.CancelledError:
            tell("cancelled", message=msg.id)
            raise
        tell("done", message=msg.id)

    async def on_cleanup(self, room_id):
        tell("cleanup", room=room_id)


async def main():
    contacts = []

    async def on_contact(event, tools):
        tell("contact", type=event.type)
        contacts.append(event)

    async def on_added(room, event):
        tell("participant_added", id=event.payload.id)

    async def on_removed(room, event):
        tell("participant_removed", id=event.payload.id)

    agent = Agent.create(
        adapter=Adapter(),
        agent_id=os.environ["AGENT_ID"],
        api_key=os.environ["API_KEY"],
        config=AgentConfig(
            # Several processes of one agent on this host are the point of some tests.
            single_instance=False,
            conflict_policy=ConflictPolicy[os.environ.get("CONFLICT_POLICY", "SUPERSEDE")],
        ),
        session_config=SessionConfig(
            max_message_retries=int(os.environ.get("MAX_RETRIES", "1")),
            idle_resync_seconds=float(os.environ.get("IDLE_RESYNC_SECONDS", "60")),
        ),
        contact_config=ContactEventConfig(strategy=ContactEventStrategy.CALLBACK, on_event=on_contact),
        on_participant_added=on_added,
        on_participant_removed=on_removed,
    )
    try:
        await agent.start()
    except AgentAlreadyRunningError as error:
        tell("refused", message=str(error))
        return
    tell("online")

    async def commands():
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async for line in reader:
            if line.strip() == b"stop":
                return

    forever = asyncio.create_task(agent.run_forever(install_signal_handlers=False))
    asked = asyncio.create_task(commands())
    await asyncio.wait({forever, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if forever.done():
        tell("ended", error=repr(forever.exception()) if forever.exception() else None)
    graceful = await agent.stop(timeout=5)
    if not forever.done():
        await asyncio.wait({forever}, timeout=5)
    tell("stopped", graceful=graceful)


asyncio.run(main())
