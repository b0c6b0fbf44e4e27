/** `node run.mjs MODULE EXPORT URL TOKEN`: prints a line of JSON for each feature. Copied beside the client's packages. */

const [module, name, url, key] = process.argv.slice(2);

import { randomUUID } from 'node:crypto';
import words from './words.json' with { type: 'json' };

/** Each text is new: the same request again gets the answer of the first one. */
const say = (what) => `${words[what]} (${randomUUID().slice(0, 8)})`;
const check = (got, expected) => {
  if (got !== expected)
    throw new Error(`got ${JSON.stringify(got)} and expected ${JSON.stringify(expected)}`);
};
/** Of what Parley does not do: the reason, as its answer shows. */
const refuse = (reason) => {
  throw Object.assign(new Error(reason), { isRefusal: true });
};
const features = (await import(`./${module}.mjs`))[name]({ url, key, check, refuse, say });
for (const [feature, run] of Object.entries(features)) {
  let outcome = 'works';
  let timer;
  try {
    if (typeof run === 'string') outcome = run;
    else
      await Promise.race([
        run(),
        new Promise((_, reject) => {
          timer = setTimeout(() => reject(new Error('no answer within 30 seconds')), 30_000);
        }),
      ]);
  } catch (error) {
    outcome = `${error?.isRefusal ? 'refused' : 'fails'}: ${String(error?.message ?? error)
      .split('\n')[0]
      .slice(0, 400)}`;
  }
  clearTimeout(timer);
  console.log(JSON.stringify({ feature, outcome }));
}
process.exit(0);
