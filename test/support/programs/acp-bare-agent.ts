/** The protocol SDK with nothing behind it: an agent that answers every prompt at once. */
import { Readable, Writable } from 'node:stream';
import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';

let count = 0;
agent({ name: 'bare' })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: String((count += 1)) }))
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const [block] = params.prompt;
    const text = block?.type === 'text' ? block.text : '';
    await client.notify(methods.client.session.update, {
      sessionId: params.sessionId,
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `echo: ${text}` } },
    });
    return { stopReason: 'end_turn' };
  })
  .connect(
    ndJsonStream(
      Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
      Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
    ),
  );
