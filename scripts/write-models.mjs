import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Writes the windows and prices of known models from the catalog of the npm package `@earendil-works/pi-ai`, which follows
 * models.dev: `node scripts/write-models.mjs 1.6.0 2026-11-20` (a version, and the day of its release). Only the providers' own
 * hosts: another host sets its own prices.
 */
const [version, date] = process.argv.slice(2);
if (!version || !date) throw new Error('usage: node scripts/write-models.mjs VERSION DATE');
const PACKAGE = '@earendil-works/pi-ai';
const PROVIDERS = [
  'anthropic',
  'openai',
  'google',
  'mistral',
  'deepseek',
  'xai',
  'groq',
  'moonshotai',
  'cerebras',
];
const TARGET = new URL('../src/config/schema/known-models.json', import.meta.url);

const folder = await mkdtemp(join(tmpdir(), 'parley-models-'));
const run = (command, ...given) => execFileSync(command, given, { cwd: folder, encoding: 'utf8' }).trim();
const archive = run('npm', 'pack', '--silent', `${PACKAGE}@${version}`).split('\n').at(-1);
run('tar', 'xzf', archive);

/** A price of 0 beside others means that the catalog has none. */
const priceOf = ({ input, cacheRead, cacheWrite, output }) => ({
  inputPerMillion: input,
  ...(cacheRead > 0 && { cachedInputPerMillion: cacheRead }),
  ...(cacheWrite > 0 && { cacheWritePerMillion: cacheWrite }),
  outputPerMillion: output,
});

/** Higher prices of requests with more input tokens. */
const aboveOf = ({ tiers = [] }) =>
  tiers.length > 0 && {
    above: tiers.map((tier) => ({ inputTokens: tier.inputTokensAbove, ...priceOf(tier) })),
  };

const hosts = {};
for (const provider of PROVIDERS) {
  const file = join(folder, 'package', 'dist', 'providers', `${provider}.models.js`);
  const lists = Object.entries(await import(pathToFileURL(file)));
  for (const [, list] of lists.filter(([name]) => !/CLASSIFIER|IMAGE/.test(name)))
    for (const { id, baseUrl, contextWindow, cost, input } of Object.values(list)) {
      const isPriced = cost.input > 0 || cost.output > 0;
      const { host } = new URL(baseUrl);
      hosts[host] ??= {};
      hosts[host][id] = {
        contextTokens: contextWindow,
        accepts: input.filter((kind) => kind !== 'text'),
        ...(isPriced && { price: { ...priceOf(cost), ...aboveOf(cost) } }),
      };
    }
}
await rm(folder, { recursive: true });

/** One line for each model, so that a new catalog is a readable difference. */
const rows = Object.entries(hosts).map(([host, models]) => {
  const lines = Object.entries(models).map(
    ([id, model]) => `      ${JSON.stringify(id)}: ${JSON.stringify(model)}`,
  );
  return `    ${JSON.stringify(host)}: {\n${lines.join(',\n')}\n    }`;
});
const source = JSON.stringify(`${PACKAGE} ${version}`);
await writeFile(
  TARGET,
  `{\n  "source": ${source},\n  "date": ${JSON.stringify(date)},\n  "hosts": {\n${rows.join(',\n')}\n  }\n}\n`,
);
console.log(`${(await readFile(TARGET, 'utf8')).split('\n').length} lines`);
