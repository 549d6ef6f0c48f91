import { forbidden, notFound } from '../world/problem.js';
import { roomFor } from '../world/rooms.js';
import type { Platform } from '../platform.js';
import { agentRoute, userRoute, type Route } from './router.js';

/** Parts of the platform that the sandbox does not offer, answered as a plan without them answers. */
export function notOfferedRoutes({ world }: Platform): Route[] {
  const noMemories = () => {
    throw forbidden('Memories are not included in this plan');
  };
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  const memoryPaths = ['/memories', '/memories/:memory', '/memories/:memory/:action'];
  const roomPaths = ['tasks', 'tasks/:task', 'tasks/:task/history', 'board', 'files', 'files/:file'];
  return [
    ...memoryPaths.flatMap((path) =>
      methods.flatMap((method) => [agentRoute(method, path, noMemories), userRoute(method, path, noMemories)]),
    ),
    ...roomPaths.flatMap((path) =>
      methods.map((method) =>
        agentRoute(method, `/chats/:chat_id/${path}`, ({ caller, params }) => {
          roomFor(world, caller.id, params['chat_id'] ?? '');
          throw notFound('Resource');
        }),
      ),
    ),
  ];
}
