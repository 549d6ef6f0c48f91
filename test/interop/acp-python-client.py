"""An ACP client on the protocol's Python SDK: opens a session, prompts, cancels, lists, loads, and prints what it saw."""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, Client, RequestError, embedded_text_resource, resource_block, text_block
from acp.stdio import spawn_agent_process


class Editor(Client):
    def __init__(self):
        self.updates = []

    async def request_permission(self, *args, **kwargs):
        raise RequestError.method_not_found("session/request_permission")

    async def session_update(self, session_id, update, **kwargs):
        content = getattr(update, "content", None)
        text = getattr(content, "text", None)
        self.updates.append([update.session_update, text])

    def texts(self, kind):
        return [text for name, text in self.updates if name == kind and text is not None]


def say(**fields):
    print(json.dumps(fields), flush=True)


async def main():
    editor = Editor()
    command = json.loads(os.environ["ACP_COMMAND"])
    async with spawn_agent_process(editor, *command, env=dict(os.environ)) as (agent, _process):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        say(event="initialized", version=hello.protocol_version, load=hello.agent_capabilities.load_session)
        session = await agent.new_session(cwd="/projects/demo", mcp_servers=[])
        sid = session.session_id
        say(event="session", id=sid, mode=session.modes.current_mode_id, options=[o.id for o in session.config_options])
        answer = await agent.prompt(session_id=sid, prompt=[text_block("hello from python")])
        say(event="answer", stop=answer.stop_reason, texts=editor.texts("agent_message_chunk"))
        attached = resource_block(embedded_text_resource("file:///a.py", "print('x')\n", mime_type="text/x-python"))
        answer = await agent.prompt(session_id=sid, prompt=[text_block("/echo look"), attached])
        say(event="answer", stop=answer.stop_reason, texts=editor.texts("agent_message_chunk")[1:])
        waiting = asyncio.create_task(agent.prompt(session_id=sid, prompt=[text_block("@mute wait")]))
        await asyncio.sleep(0.2)
        await agent.cancel(session_id=sid)
        say(event="cancelled", stop=(await waiting).stop_reason)
        listed = await agent.list_sessions()
        say(event="listed", ids=[one.session_id for one in listed.sessions])
        editor.updates.clear()
        await agent.load_session(cwd="/projects/demo", mcp_servers=[], session_id=sid)
        say(event="loaded", users=editor.texts("user_message_chunk"), agents=len(editor.texts("agent_message_chunk")))
        try:
            await agent.load_session(cwd="/projects/demo", mcp_servers=[], session_id="nope")
        except RequestError as error:
            say(event="refused", code=error.code)


asyncio.run(asyncio.wait_for(main(), 60))
sys.exit(0)
