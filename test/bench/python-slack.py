"""The Python SDK's Slack adapter with a brain that says nothing, by HTTP; says its events URL once it serves."""

import asyncio
import os
import socket

import uvicorn
from band.adapters.slack import SlackAdapter, SlackAdapterConfig, SlackApp
from band.agent import Agent
from band.core.simple_adapter import SimpleAdapter
from band.runtime.agentconfig import AgentConfig
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.routing import Mount


class Brain(SimpleAdapter):
    async def on_message(
        self, msg, tools, history, participants_msg, contacts_msg, *, is_session_bootstrap, room_id
    ):
        pass


async def main():
    app = SlackApp(slug="main", bot_token=os.environ["BOT_TOKEN"], signing_secret=os.environ["SIGNING_SECRET"])
    adapter = SlackAdapter(
        SlackAdapterConfig(apps=(app,)),
        inner=Brain(),
        web_client_factory=lambda one: AsyncWebClient(token=one.bot_token, base_url=os.environ["SLACK_API_URL"]),
    )
    agent = Agent.create(
        adapter=adapter,
        agent_id=os.environ["AGENT_ID"],
        api_key=os.environ["API_KEY"],
        config=AgentConfig(single_instance=False),
    )
    await agent.start()
    listener = socket.create_server(("127.0.0.1", 0))
    asgi = Starlette(routes=[Mount("/slack", app=adapter.router)])
    server = uvicorn.Server(uvicorn.Config(asgi, log_level="warning"))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/slack/main/events", flush=True)
    await asyncio.gather(server.serve(sockets=[listener]), agent.run_forever())


asyncio.run(main())
