import type { Artifact, JsonObject, Message, Part, StreamEvent, Task, TaskStatus } from '../wire.js';

/** One entry of a task's log. What a client sees is always a fold of these. */
export type LogEvent =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'status'; readonly status: TaskStatus; readonly metadata?: JsonObject }
  | {
      readonly kind: 'artifact';
      readonly artifact: Artifact;
      readonly append: boolean;
      readonly lastChunk: boolean;
      readonly metadata?: JsonObject;
    };

/** A task as its log makes it. */
export interface TaskView {
  readonly id: string;
  readonly contextId: string;
  status: TaskStatus;
  /** What the event of the last status said beside it. */
  statusMetadata: JsonObject | undefined;
  readonly history: Message[];
  readonly artifacts: Artifact[];
}

const UNSET: TaskStatus = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date(0).toISOString() };

export function emptyView(id: string, contextId: string): TaskView {
  return { id, contextId, status: UNSET, statusMetadata: undefined, history: [], artifacts: [] };
}

/**
 * Takes one log entry into the view. A status message that carried text moves into the history when the next status
 * replaces it.
 */
export function fold(view: TaskView, event: LogEvent): void {
  switch (event.kind) {
    case 'message':
      view.history.push(event.message);
      return;
    case 'status':
      if (view.status.message && view.status.message.parts.length > 0) view.history.push(view.status.message);
      view.status = event.status;
      view.statusMetadata = event.metadata;
      return;
    case 'artifact':
      foldArtifact(view.artifacts, event.artifact, event.append);
      return;
  }
}

function foldArtifact(artifacts: Artifact[], artifact: Artifact, append: boolean): void {
  const at = artifacts.findIndex((one) => one.artifactId === artifact.artifactId);
  const known = artifacts[at];
  if (!known) {
    artifacts.push(artifact);
    return;
  }
  const parts: readonly Part[] = append ? [...known.parts, ...artifact.parts] : artifact.parts;
  artifacts[at] = { ...known, ...artifact, parts };
}

/** The view as a client gets it; later changes of the view do not reach it. */
export function snapshot(view: TaskView): Task {
  return {
    id: view.id,
    contextId: view.contextId,
    status: view.status,
    ...(view.artifacts.length > 0 && { artifacts: [...view.artifacts] }),
    ...(view.history.length > 0 && { history: [...view.history] }),
  };
}

/** The log entry as a stream shows it; a user's message is part of the history and not an event. */
export function streamEvent(view: TaskView, event: LogEvent): StreamEvent | null {
  const ids = { taskId: view.id, contextId: view.contextId };
  switch (event.kind) {
    case 'message':
      return null;
    case 'status':
      return {
        statusUpdate: { ...ids, status: event.status, ...(event.metadata && { metadata: event.metadata }) },
      };
    case 'artifact':
      return {
        artifactUpdate: {
          ...ids,
          artifact: event.artifact,
          append: event.append,
          lastChunk: event.lastChunk,
          ...(event.metadata && { metadata: event.metadata }),
        },
      };
  }
}
