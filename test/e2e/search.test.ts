import { existsSync } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT } from '../../src/bus/contract.ts';
import { findOpenData } from '../../src/kernel/index.ts';
import { shared } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project } from '../support/project.ts';

const READER = 'a-token-that-only-reads-0123456789';
const OPERATOR = 'a-token-that-operates-0123456789ab';

const variable = (name: string) => `\${${name}}`;

/** The search of a daemon in its own process. */
describe('search', () => {
  let url: string;
  let daemon: Awaited<ReturnType<Project['up']>>;
  const project = shared(() =>
    openProject({
      nats: {},
      settings: { http: { tokens: { read: variable('READ_KEY'), operate: variable('OPERATE_KEY') } } },
      agents: { lead: '---\nname: Lead\n---\nYou lead.' },
      env: {
        READ_KEY: READER,
        OPERATE_KEY: OPERATOR,
      },
      script: [{ reply: { text: 'The narwhal is noted.' } }],
    }),
  );
  beforeAll(async () => {
    await start();
    for (const [conversation, content] of [
      ['one', 'Where does the quokka live?'],
      ['two', 'A pangolin, please'],
    ]) {
      const answer = await call('POST', `/conversations/${conversation}/messages`, { content }, OPERATOR);
      expect(answer.status).toBe(201);
    }
  });

  const start = async () => {
    daemon = await project.up('--http', '127.0.0.1:0');
    url = String(daemon.ready.http);
  };
  const call = (method: string, path: string, body?: object, token = READER) =>
    fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const found = async (query: string) => {
    const answer = CONTRACT.search.answer.parse(await (await call('GET', `/search?${query}`)).json());
    return answer.hits.map(({ conversation, index }) => `${conversation}/${index}`);
  };
  const file = () => join(project.data, 'search', 'index.sqlite');

  it('a daemon has no index before the first search', async () => {
    expect(existsSync(join(project.data, 'search'))).toBe(false);
  });

  it('a token that reads finds messages of people and agents, and no token finds nothing', async () => {
    expect(await found('q=quokka')).toEqual(['one/0']);
    await expect.poll(() => found('q=narwhal&agent=lead')).toHaveLength(2);
    expect((await fetch(`${url}/api/search?q=quokka`)).status).toBe(401);
    expect((await call('GET', '/search?q=quokka&colour=red')).status).toBe(400);
  });

  it('other users of the machine cannot read the index, and `doctor` finds nothing of it open', async () => {
    expect((await stat(join(project.data, 'search'))).mode & 0o077).toBe(0);
    expect((await findOpenData(project.data)).own).toEqual([]);
  });

  it('`parley search` prints the place and the words', async () => {
    const printed = await project.parley('search', 'quokka');
    expect(printed.stderr).toBe('');
    expect(printed.stdout).toMatch(/^one 0 {2}.*\n {2}Where does the quokka live\?$/m);
    const json = await project.parley('search', 'pangolin', '--in', 'two', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ hits: [{ conversation: 'two', index: 0 }], pending: 0 });
  });

  itLong('after a kill and without its file the index is built again', async () => {
    await daemon.kill9();
    await start();
    expect(await found('q=quokka')).toEqual(['one/0']);
    await daemon.kill9();
    await rm(join(project.data, 'search'), { recursive: true });
    await start();
    expect(await found('q=quokka')).toEqual(['one/0']);
  });

  it('a deletion removes the texts from the file, also before the first search of a daemon', async () => {
    expect(await readFile(file(), 'latin1')).toContain('pangolin');
    await daemon.kill9();
    await start();
    expect((await call('DELETE', '/conversations/two', undefined, OPERATOR)).status).toBe(200);
    expect(await readFile(file(), 'latin1')).not.toContain('pangolin');
    expect(await found('q=pangolin')).toEqual([]);
  });
});
