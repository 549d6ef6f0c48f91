import { once } from 'node:events';
import { WebSocket } from 'ws';

/** What a process holds after everything that can go is gone. */
export interface Holdings {
  readonly heapMb: number;
  /** Listeners of every emitter in the process (sockets and servers among them), and of `process` alone. */
  readonly listeners: number;
  /** Places for a connection that undici's pools keep, up to 64 an origin; their listeners are not counted above. */
  readonly poolPlaces: number;
  readonly processListeners: number;
  /** Listeners for `abort` on every signal. */
  readonly abortListeners: number;
  readonly emitters: number;
}

/** Looks into a process that was started with `--inspect=127.0.0.1:0`. */
export interface Inspector {
  /** Collects garbage, then counts. */
  holdings(): Promise<Holdings>;
  /** Objects by the name of their constructor, those that there are at least `least` of. */
  constructors(least: number): Promise<Readonly<Record<string, number>>>;
  close(): void;
}

/** The line that names the address, on standard error. */
export const INSPECTOR_LINE = /^Debugger listening on (ws:\S+)/m;

interface Reply {
  readonly id?: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

interface Remote {
  readonly objectId?: string;
  readonly value?: unknown;
}

const GROUP = 'looks';

const COUNT_EMITTERS = `function () {
  const counts = { listeners: 0, emitters: 0, poolPlaces: 0 };
  for (const one of this) {
    const events = Object.hasOwn(one, '_events') ? one._events : undefined;
    if (!events) continue;
    if (Object.getPrototypeOf(one)?.constructor?.name === 'Client' && 'connectionError' in events) {
      counts.poolPlaces += 1;
      continue;
    }
    counts.emitters += 1;
    for (const name of Reflect.ownKeys(events)) {
      counts.listeners += typeof events[name] === 'function' ? 1 : (events[name]?.length ?? 0);
    }
  }
  return counts;
}`;

const COUNT_ABORTS = `function () {
  const { getEventListeners } = process.getBuiltinModule('node:events');
  return this.reduce((sum, one) => sum + (one === AbortSignal.prototype ? 0 : getEventListeners(one, 'abort').length), 0);
}`;

const COUNT_PROCESS = 'process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)';

const COUNT_CONSTRUCTORS = `function (least) {
  const counts = new Map();
  for (const one of this) {
    const made = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(one) ?? {}, 'constructor')?.value?.name ?? 'none';
    counts.set(made, (counts.get(made) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].filter(([, count]) => count >= least));
}`;

export async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 256 * 1_048_576 });
  await once(socket, 'open');
  const waiting = new Map<number, (reply: Reply) => void>();
  let ids = 0;
  socket.on('message', (data: Buffer) => {
    const reply = JSON.parse(data.toString()) as Reply;
    if (reply.id === undefined) return;
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  });
  socket.on('close', () => {
    for (const answer of waiting.values()) answer({ error: { message: 'the process is gone' } });
  });

  const call = async (
    method: string,
    params: Record<string, unknown> = {},
  ): Promise<Readonly<Record<string, unknown>>> => {
    const id = (ids += 1);
    const reply = await new Promise<Reply>((resolve) => {
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
    if (reply.error) throw new Error(`${method}: ${reply.error.message}`);
    return reply.result ?? {};
  };
  const evaluate = async (expression: string, byValue = false): Promise<Remote> =>
    (await call('Runtime.evaluate', { expression, objectGroup: GROUP, returnByValue: byValue }))['result'] as Remote;
  /** Every object with a prototype, handed to a function as `this`. */
  const over = async (
    prototype: string,
    functionDeclaration: string,
    ...args: readonly unknown[]
  ): Promise<unknown> => {
    const { objectId: prototypeObjectId } = await evaluate(prototype);
    const found = await call('Runtime.queryObjects', { prototypeObjectId, objectGroup: GROUP });
    const { objectId } = found['objects'] as Remote;
    const values = args.map((value) => ({ value }));
    const answer = await call('Runtime.callFunctionOn', {
      functionDeclaration,
      objectId,
      arguments: values,
      returnByValue: true,
    });
    await call('Runtime.releaseObjectGroup', { objectGroup: GROUP });
    return (answer['result'] as Remote).value;
  };

  return {
    async holdings() {
      const emitters = (await over("process.getBuiltinModule('node:events').prototype", COUNT_EMITTERS)) as {
        readonly listeners: number;
        readonly emitters: number;
        readonly poolPlaces: number;
      };
      const abortListeners = (await over('AbortSignal.prototype', COUNT_ABORTS)) as number;
      const processListeners = (await evaluate(COUNT_PROCESS, true)).value as number;
      await call('HeapProfiler.collectGarbage');
      const { usedSize } = await call('Runtime.getHeapUsage');
      return { ...emitters, abortListeners, processListeners, heapMb: Number(usedSize) / 1_048_576 };
    },
    async constructors(least) {
      return (await over('Object.prototype', COUNT_CONSTRUCTORS, least)) as Record<string, number>;
    },
    close() {
      socket.close();
    },
  };
}
