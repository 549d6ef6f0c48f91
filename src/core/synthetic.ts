/** Who writes the messages that the runtime makes of contact events; the platform does not know these messages. */
export const CONTACT_EVENTS_SENDER = Object.freeze({
  senderType: 'System',
  senderId: 'contact-events',
  senderName: 'Contact Events',
});

/** True for a message that stands for a contact event: never claimed, marked, counted or judged. */
export function isSynthetic(message: { readonly senderType: string; readonly senderId: string }): boolean {
  return message.senderType === CONTACT_EVENTS_SENDER.senderType && message.senderId === CONTACT_EVENTS_SENDER.senderId;
}
