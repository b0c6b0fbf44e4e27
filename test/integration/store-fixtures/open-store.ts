import { openFileStore } from '../../../src/persistence/jsonl/index.ts';

/** Opens the store in the given directory, and closes it. */
const [directory = ''] = process.argv.slice(2);
await (await openFileStore(directory)).close();
