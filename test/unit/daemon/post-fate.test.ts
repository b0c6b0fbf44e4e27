import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery } from '../../../src/bus/index.ts';
import { covers, startOf } from '../../../src/bus/settled.ts';
import { isCovered } from '../../../src/persistence/index.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

/** Runs each cell of the second table of docs/spec/wire.md, "The fate of a post", on a daemon of this process. */

const STATES = ['new', 'inLog', 'refused', 'deleted', 'elsewhere'] as const;
type State = (typeof STATES)[number];
const ACCEPTED = { id: 'm1', content: 'hello' };
/** Nobody has this name until the test hires an agent. */
const REFUSED = { ...ACCEPTED, to: ['nobody'] };

class Fate {
  readonly daemon: TestDaemon = createDaemon();
  /** The posts are for an agent that exists once they are accepted. */
  post: Delivery = this.#delivery();
  #isElsewhere = false;

  #delivery(): Delivery {
    return this.daemon.bus.delivery('alice', 'demo', REFUSED);
  }

  hire(): void {
    const { agents } = this.daemon.runtime.team.rules.roster as unknown as { agents: Map<string, unknown> };
    agents.set('nobody', { ...(agents.get('dev') as object), slug: 'nobody', name: 'Nobody' });
  }

  dismiss(): void {
    const { agents } = this.daemon.runtime.team.rules.roster as unknown as { agents: Map<string, unknown> };
    agents.delete('nobody');
  }

  async begin(state: State): Promise<void> {
    if (state === 'inLog' || state === 'deleted') this.hire();
    if (state !== 'new' && state !== 'elsewhere') await this.daemon.posts.deliver(this.post);
    if (state === 'deleted') await this.delete();
    this.#isElsewhere = state === 'elsewhere';
    this.dismiss();
  }

  /** As the reader of the stream: what another store settled, or a letter names, is not delivered, except by a replay. */
  async deliver(isReplay = false): Promise<void> {
    const { stream, sequence } = this.post.position;
    const settled = { upTo: this.#isElsewhere ? sequence : 0, open: [] };
    const record = { stream, by: { id: 'b', name: 'b' }, settled, before: null, last: null, reader: null };
    const owner = { id: 'a', name: 'a' };
    const start = startOf({
      own: null,
      owner,
      record,
      isReplay,
      stream: { created: stream, last: sequence },
    });
    const isSkipped =
      sequence <= (start.position?.sequence ?? 0) || (start.skip && covers(start.skip)(sequence));
    const hasLetter = (await this.state()) === 'refused';
    if (isSkipped || (!isReplay && hasLetter)) return;
    this.#isElsewhere = false;
    await this.daemon.posts.deliver({ ...this.post, hasLetter });
  }

  async postAgain(): Promise<void> {
    this.post = this.#delivery();
    this.#isElsewhere = false;
    await this.daemon.posts.deliver(this.post);
    const asked = { ...REFUSED, conversation: 'demo', publisher: 'alice' };
    expect(await this.daemon.request('post', asked)).toMatchObject({ ok: true, body: { duplicate: true } });
  }

  async retry(): Promise<void> {
    expect(await this.daemon.request('dead-retry', { sequence: 1 })).toMatchObject({ ok: true });
  }

  async delete(): Promise<void> {
    await this.daemon.request('delete', { conversation: 'demo' });
  }

  async state(): Promise<State> {
    const { store, workers, bus } = this.daemon;
    if (this.#isElsewhere && !(await this.#isDeleted())) return 'elsewhere';
    if (await this.#isDeleted()) return 'deleted';
    const fate = await workers.fateInConversation({ publisher: 'alice', conversation: 'demo', id: 'm1' });
    if (fate !== 'new') return fate;
    const { sequence } = this.post.position;
    expect(await store.exists('demo')).toBe(false);
    return [...bus.letters.values()].some(({ ingress }) => ingress?.sequence === sequence)
      ? 'refused'
      : 'new';
  }

  async #isDeleted(): Promise<boolean> {
    return isCovered(this.post.position, await this.daemon.store.deletedUpTo('demo'));
  }
}

const EVENTS: Readonly<Record<string, (fate: Fate) => Promise<void>>> = {
  'delivered, and accepted': (fate) => {
    fate.hire();
    return fate.deliver();
  },
  'delivered, and refused': (fate) => fate.deliver(),
  'delivered by `--replay`, and accepted': (fate) => {
    fate.hire();
    return fate.deliver(true);
  },
  'delivered by `--replay`, and refused': (fate) => fate.deliver(true),
  'posted again, and accepted': (fate) => {
    fate.hire();
    return fate.postAgain();
  },
  'its letter is retried': (fate) => {
    fate.hire();
    return fate.retry();
  },
  'its conversation is deleted': (fate) => fate.delete(),
};

const page = await readFile(new URL('../../../docs/spec/wire.md', import.meta.url), 'utf8');
const rows = page
  .slice(page.indexOf('| event | `new` |'))
  .split('\n\n')[0]
  ?.split('\n')
  .slice(2)
  .map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

describe('the fate of a post', () => {
  let fate: Fate;
  afterEach(() => fate.daemon.end());

  it('the table has a row for each event', () => {
    fate = new Fate();
    expect(rows?.map(([event]) => event)).toEqual(Object.keys(EVENTS));
  });

  const cells = (rows ?? []).flatMap(([event = '', ...after]) =>
    after.flatMap((cell, place) => (cell === '' ? [] : [[STATES[place] as State, event, cell] as const])),
  );

  it.each(cells)('a post that is `%s`, when it is %s, is then %s', async (before, event, after) => {
    fate = new Fate();
    await fate.begin(before);
    expect(await fate.state()).toBe(before);
    await EVENTS[event]?.(fate);
    expect(`\`${await fate.state()}\``).toBe(after);
    const entries = await fate.daemon.entries();
    expect(entries.filter(({ id }) => id === 'm1').length).toBeLessThanOrEqual(1);
    expect(fate.daemon.bus.letters.size).toBeLessThanOrEqual(1);
  });
});
