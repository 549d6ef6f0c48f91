"""The Python SDK's A2A gateway as it comes, on any free port; says its origin once it serves."""

import asyncio
import os

from band.adapters.a2a_gateway import A2AGatewayAdapter, A2AGatewayAdapterConfig
from band.agent import Agent
from band.runtime.agentconfig import AgentConfig


async def main():
    adapter = A2AGatewayAdapter(A2AGatewayAdapterConfig(port=0))
    agent = Agent.create(
        adapter=adapter,
        agent_id=os.environ["AGENT_ID"],
        api_key=os.environ["API_KEY"],
        config=AgentConfig(single_instance=False),
    )
    await agent.start()
    # The option's only door to the port that the system chose.
    print(f"http://127.0.0.1:{adapter._server.bound_port}", flush=True)
    await agent.run_forever()


asyncio.run(main())
