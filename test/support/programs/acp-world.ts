/** A sandbox with an echo peer, in a process of its own, for benches: prints the environment of an editor's command. */
import { echoes, startWorld } from '../acp/world.js';

const world = await startWorld();
await world.peer('Echo', echoes);
process.send?.(world.env);
process.on('disconnect', () => {
  void world.stop().then(() => process.exit(0));
});
