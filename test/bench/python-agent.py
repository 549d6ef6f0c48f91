"""An agent on the Python SDK that answers "ok" to everything, and writes a dot for each message."""

import asyncio
import os
import sys

from band.agent import Agent
from band.core.simple_adapter import SimpleAdapter
from band.runtime.agentconfig import AgentConfig


class Adapter(SimpleAdapter):
    async def on_message(
        self, msg, tools, history, participants_msg, contacts_msg, *, is_session_bootstrap, room_id
    ):
        await tools.send_message("ok", [msg.sender_id])
        sys.stdout.write(".")
        sys.stdout.flush()


async def main():
    agent = Agent.create(
        adapter=Adapter(),
        agent_id=os.environ["AGENT_ID"],
        api_key=os.environ["API_KEY"],
        config=AgentConfig(single_instance=False),
    )
    await agent.start()
    print("online", flush=True)
    await agent.run_forever()


asyncio.run(main())
