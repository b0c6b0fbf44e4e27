import { renameSync } from 'node:fs';

/** In its working directory, in a loop: `turn` is the folder `kept`, then the link `link`, then nothing. */
process.stdout.write('begun\n');
for (;;) {
  for (const name of ['kept', 'link']) {
    renameSync(name, 'turn');
    renameSync('turn', name);
  }
}
