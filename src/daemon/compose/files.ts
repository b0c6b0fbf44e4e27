import { join } from 'node:path';
import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { ConversationStore, StoreInspector, WhatIfTexts } from '../../persistence/index.ts';
import {
  checkFormat,
  inspectFiles,
  keepAside,
  openFileStore,
  openWhatIfFiles,
  readLogFile,
  refuseFile,
  refuseUnfinished,
  storePaths,
} from '../../persistence/jsonl/index.ts';

/** Opens the files of a data directory for commands that run without a daemon. */

/** Reads the log of a conversation without a daemon. Takes no lock and changes nothing. */
export async function composeLogReader(
  dataDirectory: string,
  conversation: string,
): Promise<readonly Entry[]> {
  await checkFormat(dataDirectory);
  await refuseUnfinished(dataDirectory);
  const { entries } = await readLogFile(storePaths(dataDirectory).log(conversation));
  return entries;
}

/** Inspects a data directory. Takes no lock and changes nothing. */
export function composeInspector(dataDirectory: string): StoreInspector {
  return inspectFiles(dataDirectory);
}

/** Keeps a refused file, once per content; resolves to its path. */
export async function composeQuarantine(
  dataDirectory: string,
  name: string,
  content: Buffer,
): Promise<string> {
  await refuseFile(dataDirectory);
  return keepAside(join(dataDirectory, 'quarantine'), name, content);
}

/** The results of what-ifs, which are files with every store. */
export function composeWhatIfTexts(dataDirectory: string): WhatIfTexts {
  return openWhatIfFiles(dataDirectory);
}

/** Opens the store of a data directory that no daemon uses. */
export function composeOwnStore(dataDirectory: string): Promise<ConversationStore> {
  return openFileStore(dataDirectory).catch((error: unknown) => {
    if (!(error instanceof ParleyError) || error.code !== 'DATA_DIRECTORY_IN_USE') throw error;
    throw new ParleyError(error.code, error.message, {
      hint: 'this command changes files that a running daemon owns: stop that daemon first',
      cause: error,
    });
  });
}
