import { isGatewayError, toError } from '../../../src/base/errors.js';
import type { BandAccess } from '../band.js';
import { findPerson, toPerson, type Person } from '../roster.js';
import type { Session } from './session.js';
import type { SessionDeps } from './sessions.js';

/**
 * Adds the configured peers to a new session's room, and the owner where wished. One failure is a warning.
 *
 * @returns the warnings
 * @throws what the first invitation failed with, when all of them failed
 */
export async function invitePeers(
  session: Session,
  access: BandAccess,
  known: readonly Person[],
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<string[]> {
  const { peers, inviteOwner } = deps.options;
  const warnings: string[] = [];
  const wanted = new Map<string, Person>();
  for (const named of peers) {
    const found = findPerson(known, named);
    if (found.kind === 'one') wanted.set(found.person.id, found.person);
    else warnings.push(`The configured peer "${named}" is ${found.kind === 'none' ? 'not known' : 'ambiguous'}.`);
  }
  if (inviteOwner && access.ownerId !== null) {
    const owner = known.find(({ id }) => id === access.ownerId);
    wanted.set(access.ownerId, owner ?? bareUser(access.ownerId));
  }
  let firstError: unknown = null;
  let invited = 0;
  for (const person of wanted.values()) {
    try {
      const participant = { participantId: person.id, role: 'member' } as const;
      const added = await access.rest.addParticipant(session.roomId, participant, { signal });
      session.people.joined(known.find(({ id }) => id === person.id) ?? toPerson(added));
      invited += 1;
    } catch (error) {
      signal.throwIfAborted();
      if (isGatewayError(error, 'BAND_CONFLICT')) {
        session.people.joined(person);
        invited += 1;
        continue;
      }
      firstError ??= error;
      deps.log.warn({ err: error, roomId: session.roomId, peer: person.handle }, 'a peer could not be invited');
      warnings.push(`@${person.handle ?? person.name} could not be added to the room.`);
    }
  }
  if (firstError !== null && invited === 0) throw toError(firstError);
  return warnings;
}

function bareUser(id: string): Person {
  return { id, name: 'owner', handle: null, type: 'User', description: null };
}
