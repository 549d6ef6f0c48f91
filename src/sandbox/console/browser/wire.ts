/** What the platform sends to people, as far as the console reads it. */

export interface Profile {
  readonly id: string;
  readonly handle: string;
}

export interface Room {
  readonly id: string;
  readonly title: string;
  readonly inserted_at: string;
}

export interface Participant {
  readonly id: string;
  readonly name: string;
  readonly type: 'User' | 'Agent';
  readonly role?: string;
  readonly handle?: string | null;
  readonly online?: boolean;
  readonly description?: string | null;
}

export interface Attempt {
  readonly attempt_number: number;
  readonly status: string;
  readonly error?: string;
}

export interface Delivery {
  readonly status: string;
  readonly attempts?: readonly Attempt[];
}

export interface Message {
  readonly id: string;
  readonly content: string;
  readonly message_type: string;
  readonly sender_id: string;
  readonly sender_type: string;
  readonly sender_name: string;
  readonly chat_room_id: string;
  readonly metadata: {
    readonly mentions?: readonly { readonly id: string; readonly name?: string; readonly handle?: string }[];
    readonly delivery_status?: Readonly<Record<string, Delivery>>;
    readonly [key: string]: unknown;
  };
  readonly inserted_at: string;
}

export interface Execution {
  readonly agent_id: string;
  readonly chat_room_id: string;
  readonly status: 'active' | 'stopped';
  readonly working: boolean;
}

export interface Activity {
  readonly agent_id: string;
  readonly chat_room_id: string;
  readonly working: boolean;
}
