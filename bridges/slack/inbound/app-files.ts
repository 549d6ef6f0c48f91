import { join } from 'node:path';
import type { Installation } from '../installations.js';
import { createFilesIn, type FilesIn, type FilesInDeps } from './files-in.js';

export interface AppFilesDeps extends Pick<FilesInDeps, 'slackApiUrl' | 'dispatcher' | 'limits' | 'clock' | 'log'> {
  /** Holds a folder for each app's files. */
  readonly folder: string;
}

/** The files people sent, app by app. */
export interface AppFiles {
  of(installation: Installation): FilesIn;
  /** Removes what is past its time, of every app. */
  sweep(): Promise<void>;
}

export function createAppFiles({ folder, ...deps }: AppFilesDeps): AppFiles {
  const byApp = new Map<string, FilesIn>();
  return {
    of({ app, client, identity }) {
      const known = byApp.get(app.slug);
      if (known) return known;
      const team = identity?.teamId ?? '-';
      const files = createFilesIn({ ...deps, client, team, token: app.botToken, folder: join(folder, app.slug) });
      byApp.set(app.slug, files);
      return files;
    },
    async sweep() {
      for (const files of byApp.values()) await files.sweep();
    },
  };
}
