import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { releaseText } from '../../../scripts/release.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (name: string) => readFile(join(ROOT, name), 'utf8');
const packageOf = async (path: string) => JSON.parse(await read(path));

const CHANGELOG = `# Changelog

## [Unreleased]

- later

## [1.2.0] - 2026-12-01

### Added

- a verb

## [1.1.0] - 2026-11-01

- older
`;
const release = (changes: object = {}) => ({
  tag: 'v1.2.0',
  changelog: CHANGELOG,
  parleyd: { version: '1.2.0' },
  createParleyd: { version: '1.2.0', dependencies: { parleyd: '^1.2.0' } },
  ...changes,
});

describe('the text of a release', () => {
  it('the text of a release is its section of the changelog', () => {
    expect(releaseText(release())).toBe('### Added\n\n- a verb');
  });

  it.each([
    ['tag', { tag: 'v1.1.0' }, 'package.json has the version 1.2.0'],
    ['tag without v', { tag: '1.2.0' }, 'package.json has the version 1.2.0'],
    ['second package', { createParleyd: { version: '1.1.0', dependencies: { parleyd: '^1.2.0' } } }, '1.1.0'],
    [
      'dependency',
      { createParleyd: { version: '1.2.0', dependencies: { parleyd: '^1.0.0' } } },
      '^1.0.0, not',
    ],
    ['missing section', { changelog: '## [1.1.0] - 2026-11-01\n- older' }, 'has no section `## [1.2.0]'],
    ['section without a date', { changelog: '## [1.2.0]\n- new' }, 'has no section'],
    ['empty section', { changelog: '## [1.2.0] - 2026-12-01\n\n## [1.1.0] - 2026-11-01\n' }, 'is empty'],
  ])('a release with a wrong %s is refused', (_, changes, reason) => {
    expect(() => releaseText(release(changes))).toThrow(reason);
  });

  it('the two packages of this checkout have the same version', async () => {
    const parleyd = await packageOf('package.json');
    const changelog = `## [${parleyd.version}] - 2026-12-01\n- new\n`;
    const createParleyd = await packageOf('packages/create-parleyd/package.json');
    expect(releaseText({ tag: `v${parleyd.version}`, changelog, parleyd, createParleyd })).toBe('- new');
  });
});

interface Step {
  readonly run?: string;
  readonly uses?: string;
  readonly 'working-directory'?: string;
}
interface Workflow {
  readonly on: object;
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<string, { readonly needs?: string; readonly uses?: string; readonly steps?: Step[] }>
  >;
}
const workflow = async (name: string): Promise<Workflow> => parse(await read(`.github/workflows/${name}`));
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps ?? []);

describe('the workflows', () => {
  it.each(['ci.yml', 'release.yml'])(
    'the workflow %s runs files that exist and may only read by default',
    async (name) => {
      const described = await workflow(name);
      expect(described.permissions).toEqual({ contents: 'read' });
      const commands = stepsOf(described).flatMap(({ run }) => run ?? []);
      const files = commands.flatMap((command) => command.match(/(?:\.ci|scripts|packages)\/[\w.-]+/g) ?? []);
      expect(files.length).toBeGreaterThan(0);
      for (const file of files) expect(existsSync(join(ROOT, file)), file).toBe(true);
      for (const { jobs } of [described])
        for (const { uses } of Object.values(jobs))
          if (uses) expect(existsSync(join(ROOT, uses)), uses).toBe(true);
    },
  );

  it('a tag is published after all tests, with provenance, and both packages', async () => {
    const { on, jobs } = await workflow('release.yml');
    expect(on).toEqual({ push: { tags: ['v*'] } });
    expect(jobs.test?.uses).toBe('./.github/workflows/ci.yml');
    expect((await workflow('ci.yml')).on).toHaveProperty('workflow_call');
    expect(jobs.publish?.needs).toBe('test');
    const published = (jobs.publish?.steps ?? []).filter(({ run }) => run?.startsWith('npm publish'));
    expect(published.map(({ run }) => run)).toEqual(
      Array(2).fill('npm publish --provenance --access public'),
    );
    expect(published.map((step) => step['working-directory'])).toEqual([
      undefined,
      'packages/create-parleyd',
    ]);
  });

  it('the tests run with the oldest supported version of Node', async () => {
    const { engines } = await packageOf('package.json');
    const text = await read('.github/workflows/ci.yml');
    expect(parse(text).jobs.test.strategy.matrix.node).toContain(engines.node.replace('>=', ''));
  });
});
