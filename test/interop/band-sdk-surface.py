"""Every REST method that the Python SDK's generated client has for what the sandbox offers, called once.

The client parses answers strictly, so a missing or misspelled field ends in an error here. Prints one line of JSON:
the methods that worked, and what went wrong with the others.
"""

import asyncio
import json
import os
import uuid

from band_rest import (
    AgentRegisterRequest,
    AsyncRestClient,
    ChatEventRequest,
    ChatMessageRequest,
    ChatRoomRequest,
    ParticipantRequest,
)
from band_rest.core.api_error import ApiError
from band_rest.types import ChatMessageRequestMentionsItem

BASE = os.environ["BAND_REST_URL"]
AGENT = os.environ["AGENT_ID"]
OTHER = os.environ["OTHER_AGENT_ID"]

worked, failed = [], {}
# The client repeats a 409 with growing pauses unless it is told not to.
once = {"request_options": {"max_retries": 0}}


async def check(name, call, expect=None):
    """The answer of a call; or, when a status is expected, the error that carries it."""
    try:
        answer = await call
    except ApiError as error:
        body = error.body if isinstance(error.body, dict) else error.body.model_dump()
        envelope = body["error"]["code"] if body["error"]["request_id"] else None
        if expect is not None and error.status_code == expect and envelope is not None:
            worked.append(f"{name} {expect} {envelope}")
        else:
            failed[name] = f"{error.status_code} {error.body}"
        return None
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
        return None
    if expect is None:
        worked.append(name)
    else:
        failed[name] = f"answered without an error, {expect} was expected"
    return answer


def message(content, *ids):
    return ChatMessageRequest(content=content, mentions=[ChatMessageRequestMentionsItem(id=id) for id in ids])


async def main():
    agent = AsyncRestClient(api_key=os.environ["API_KEY"], base_url=BASE)
    other = AsyncRestClient(api_key=os.environ["OTHER_API_KEY"], base_url=BASE)
    user = AsyncRestClient(api_key=os.environ["USER_API_KEY"], base_url=BASE)
    nobody = AsyncRestClient(api_key="band_a_nobody", base_url=BASE)

    await check("401", nobody.agent_api_identity.get_agent_me(), 401)
    await check("403", user.agent_api_identity.get_agent_me(), 403)
    await check("get_agent_me", agent.agent_api_identity.get_agent_me())
    await check("list_agent_peers", agent.agent_api_peers.list_agent_peers(page=1, page_size=100))
    room = (await check("create_agent_chat", agent.agent_api_chats.create_agent_chat(chat=ChatRoomRequest()))).data.id
    await check("list_agent_chats", agent.agent_api_chats.list_agent_chats(page=1, page_size=100))
    await check("get_agent_chat", agent.agent_api_chats.get_agent_chat(room))
    await check("get_agent_chat", agent.agent_api_chats.get_agent_chat(str(uuid.uuid4())), 404)
    await check("rename_agent_chat", agent.agent_api_chats.rename_agent_chat(room, chat={"title": "Weather"}))
    people = agent.agent_api_participants
    wanted = ParticipantRequest(participant_id=OTHER, role="member")
    await check("add_agent_chat_participant", people.add_agent_chat_participant(room, participant=wanted))
    await check("add_agent_chat_participant twice", people.add_agent_chat_participant(room, participant=wanted, **once), 409)
    await check("list_agent_chat_participants", people.list_agent_chat_participants(room))

    said = agent.agent_api_messages
    await check("create_agent_chat_message", said.create_agent_chat_message(room, message=message("hello", OTHER)))
    await check("blank message", said.create_agent_chat_message(room, message=message(" ", OTHER)), 422)
    await check("no mention", said.create_agent_chat_message(room, message=message("hello")), 422)
    heard = other.agent_api_messages
    next_one = (await check("get_agent_next_message", heard.get_agent_next_message(room))).data.id
    for status in [None, "pending", "processing", "processed", "failed", "all"]:
        await check(f"list_agent_messages {status}", heard.list_agent_messages(room, status=status, limit=100))
    await check("list_agent_messages page", heard.list_agent_messages(room, status="processing", page=1))
    await check("mark failed too early", heard.mark_agent_message_failed(room, next_one, error="no"), 422)
    await check("mark_agent_message_processing", heard.mark_agent_message_processing(room, next_one))
    await check("mark_agent_message_failed", heard.mark_agent_message_failed(room, next_one, error="went wrong"))
    await check("mark_agent_message_processing again", heard.mark_agent_message_processing(room, next_one))
    await check("mark_agent_message_processed", heard.mark_agent_message_processed(room, next_one))
    none = await heard.with_raw_response.get_agent_next_message(room)
    (worked.append("204") if none.status_code == 204 else failed.update({"204": str(none.status_code)}))
    for kind in ["tool_call", "tool_result", "thought", "error", "task"]:
        event = ChatEventRequest(content="something", message_type=kind, metadata={"id": "1"})
        await check(f"create_agent_chat_event {kind}", agent.agent_api_events.create_agent_chat_event(room, event=event))
    await check("get_agent_chat_context", agent.agent_api_context.get_agent_chat_context(room))
    await check("get_agent_chat_context page", agent.agent_api_context.get_agent_chat_context(room, page=1, page_size=2))
    await check("report_agent_chat_activity", agent.agent_api_activity.report_agent_chat_activity(room, working=True))
    await check("list_agent_memories", agent.agent_api_memories.list_agent_memories(), 403)
    await check("list_chat_tasks", agent.agent_api_chat_tasks.list_chat_tasks(room), 404)

    contacts = agent.agent_api_contacts
    foreign = os.environ["FOREIGN_HANDLE"]
    await check("add_agent_contact", contacts.add_agent_contact(handle=f"@{foreign}", message="hi"))
    await check("add_agent_contact twice", contacts.add_agent_contact(handle=foreign, **once), 409)
    await check("list_agent_contact_requests", contacts.list_agent_contact_requests())
    await check("cancel", contacts.respond_to_agent_contact_request(action="cancel", handle=foreign))
    await check("add_agent_contact", contacts.add_agent_contact(handle=foreign))
    stranger = AsyncRestClient(api_key=os.environ["FOREIGN_API_KEY"], base_url=BASE)
    asked = await check("list_agent_contact_requests", stranger.agent_api_contacts.list_agent_contact_requests())
    request_id = asked.data.received[0].id
    await check(
        "respond_to_agent_contact_request",
        stranger.agent_api_contacts.respond_to_agent_contact_request(action="approve", request_id=request_id),
    )
    await check("list_agent_contacts", contacts.list_agent_contacts())
    await check("remove_agent_contact", contacts.remove_agent_contact(handle=foreign))
    await check("remove_agent_contact", contacts.remove_agent_contact(), 400)
    await check("remove_agent_chat_participant", people.remove_agent_chat_participant(room, OTHER))
    await check("sole owner", people.remove_agent_chat_participant(room, AGENT), 403)

    me = user
    await check("get_my_profile", me.human_api_profile.get_my_profile())
    await check("update_my_profile", me.human_api_profile.update_my_profile(user={"first_name": "Demo", "last_name": "P"}))
    await check("list_my_peers", me.human_api_peers.list_my_peers())
    mine = (await check("create_my_chat_room", me.human_api_chats.create_my_chat_room(chat={}))).data.id
    await check("list_my_chats", me.human_api_chats.list_my_chats())
    await check("get_my_chat_room", me.human_api_chats.get_my_chat_room(mine))
    await check("add_my_chat_participant", me.human_api_participants.add_my_chat_participant(mine, participant=wanted))
    await check("list_my_chat_participants", me.human_api_participants.list_my_chat_participants(mine))
    await check("send_my_chat_message", me.human_api_messages.send_my_chat_message(mine, message=message("hi", OTHER)))
    listed = await check("list_my_chat_messages", me.human_api_messages.list_my_chat_messages(mine))
    since = listed.data[0].inserted_at
    await check("list_my_chat_messages since", me.human_api_messages.list_my_chat_messages(mine, since=since))
    await check(
        "list_my_chat_messages types",
        me.human_api_messages.list_my_chat_messages(mine, exclude_message_types=["tool_call", "thought"]),
    )
    await check("remove_my_chat_participant", me.human_api_participants.remove_my_chat_participant(mine, OTHER))
    made = await check(
        "register_my_agent",
        me.human_api_agents.register_my_agent(agent=AgentRegisterRequest(name="New One", description="is new")),
    )
    await check("list_my_agents", me.human_api_agents.list_my_agents(name="new"))
    await check("delete_my_agent", me.human_api_agents.delete_my_agent(made.data.agent.id))
    await check(
        "create_contact_request",
        me.human_api_contacts.create_contact_request(contact_request={"recipient_handle": foreign}),
    )
    sent = await check("list_sent_contact_requests", me.human_api_contacts.list_sent_contact_requests())
    await check("cancel_contact_request", me.human_api_contacts.cancel_contact_request(sent.data[0].id))
    await check("list_received_contact_requests", me.human_api_contacts.list_received_contact_requests())
    await check("list_my_contacts", me.human_api_contacts.list_my_contacts())
    await check("resolve_handle", me.human_api_contacts.resolve_handle(handle=foreign))

    print(json.dumps({"event": "summary", "worked": worked, "failed": failed}))


asyncio.run(main())
