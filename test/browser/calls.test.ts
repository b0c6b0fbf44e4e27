import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { gate } from '../support/gate.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { hasLongTests } from '../support/runs.ts';
import {
  clickAgain,
  inboxItem,
  message,
  openItem,
  pressAlone,
  sharedStage,
  textOf,
  textsCut,
  write,
} from './support.ts';
import { AGENTS, calls } from './team.ts';

/** Longer than a line, with its risk at the end. */
const COMMAND = `echo ${'harmless '.repeat(20)}\nrm -rf /the/end`;
const EDIT = { path: '@project/plan.md', find: 'one\ntwo\nthree', replace: 'one\n2\nthree' };

const isInWindow = async (one: Locator) => {
  const { y = -1, height = 0 } = (await one.boundingBox()) ?? {};
  return y >= 0 && y + height <= (one.page().viewportSize()?.height ?? 0);
};

const LONG = Array.from({ length: 60 }, (_, n) => `line ${n + 1} ${'x'.repeat(200)}`).join('\n');

/** Two texts that are the same, a repeated key, a number that is rounded and hidden characters. */
const FOREIGN = String.raw`{"old_string":"pay\nmallory","new_string":"pay\nmallory","sum":1,"sum":12345678901234567890,"to":"a\u202eb"}`;
const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));

const QA = '---\nname: Quinn\ndescription: tests\ntools: [ask]\n---\nYou test.';

const SCRIPT = [
  on('/^foreign/', { tool_calls: [{ name: 'mcp__program__surroundings', arguments: FOREIGN }] }),
  on('/^long/', calls(['shell', { command: `${'echo step\n'.repeat(60)}rm -rf /the/end` }])),
  on('/^book/', calls(['mcp__program__book', {}])),
  on('/^survey/', calls(['mcp__program__survey', {}])),
  on('/^sly/', calls(['mcp__program__sly', {}])),
  on('/^hurry/', calls(['mcp__program__hurry', {}])),
  on('/^shell/', calls(['shell', { command: COMMAND }])),
  on(
    '/^three/',
    calls(...['one', 'two', 'three'].map((word) => ['shell', { command: `echo ${word}` }] as const)),
  ),
  on('/^sleep/', calls(['shell', { command: 'sleep 600' }])),
  on('/^edit/', calls(['fs_edit', EDIT])),
  on('/^mixed/', calls(['fs_edit', { ...EDIT, all: true }])),
  on(
    '/^overwrite/',
    calls(['fs_write', { path: '@project/long.md', content: LONG.replace('line 30', 'thirty') }]),
  ),
  on('/^terms/', calls(['fs_write', { path: '@project/terms.md', content: 'net 60\n' }])),
  on('/^stale/', calls(['fs_edit', { ...EDIT, find: 'four' }])),
  on('/^write/', calls(['fs_write', { path: '@project/a.md', content: '# A\n\n\u202ehidden' }])),
  on('/^read/', calls(['fs_read', { path: '@project/none.md' }])),
  on('/^colours/', calls(['fs_read', { path: '@project/colours.log' }])),
  on('/^shout/', { text: 'So far so good', error: { code: 'RATE_LIMITED', message: 'Ask less often.' } }),
  on('/^huge/', { text: 'So far', error: { code: 'CONTEXT_STILL_TOO_LARGE', message: 'It is too large.' } }),
  on('/^key/', { text: '', error: { status: 401, message: 'No such key.' } }),
  on('/^slowly/', { text: 'word '.repeat(400), delayMs: 25 }),
  on('/^continue/i', { text: 'I am back.' }),
  { when: { agent: 'dev', last: '/^@dev ask/' }, reply: calls(['ask', { question: 'Which one?' }]) },
  { when: { agent: 'qa', last: '/^@qa ask/' }, reply: calls(['ask', { question: 'Which browser?' }]) },
  { reply: { text: 'Noted: {{last}}' } },
];

describe.skipIf(chromiumPath === null)('calls, failures and stops in the console', () => {
  const stage = sharedStage(() => {
    const lead = AGENTS.lead.replace(
      'fs_write, fs_read',
      'fs_write, fs_read, fs_edit, shell, mcp__program__*',
    );
    return {
      settings: {
        tools: {
          project: 'project',
          mcpServers: { program: { command: process.execPath, args: [PROGRAM] } },
        },
        approvals: { ownRequests: true },
      },
      agents: { ...AGENTS, lead, qa: QA },
      script: SCRIPT,
      before: async ({ root }) => {
        await mkdir(join(root, 'project'));
        await writeFile(join(root, 'project/plan.md'), 'one\ntwo\nthree\n');
        await writeFile(join(root, 'project/long.md'), LONG);
        await writeFile(join(root, 'project/colours.log'), '\u001b[31mred\u001b[0m and \u202edetrevni\n');
      },
    };
  }, /status of 400/);

  const { post } = stage;

  it('an approval shows the whole command, why it is needed, and one primary answer with its key', async () => {
    const page = await stage.begin('command', 'shell');
    const card = page.locator('.ask-card');
    expect(await textOf(card.locator('pre').first())).toBe(COMMAND);
    expect(await textOf(card)).toContain('shell may change something outside this conversation');
    expect(await card.locator('button.primary').allInnerTexts()).toEqual(['Approve']);
    await card.getByText('As a rule for all conversations').click();
    expect(await textOf(card.locator('.rule'))).toContain('No rule can allow this command.');
    expect(await card.locator('.rule').getByText('allow: true').count()).toBe(0);
  });

  itLong(
    'an approval of an edit shows the changed lines, and of a write the content with hidden characters',
    async () => {
      const page = await stage.begin('edit', 'edit');
      const card = page.locator('.ask-card');
      await card.locator('.diff .gone').waitFor();
      expect(await card.locator('.diff .gone').innerText()).toContain('two');
      expect(await card.locator('.diff .added').innerText()).toContain('2');
      expect(await textOf(card)).toContain('@project/plan.md');
      await post('wrote', 'write');
      await page.evaluate("location.hash = '#/c/wrote'");
      await expect.poll(() => card.locator('pre').first().innerText()).toBe('# A\n\n\\u202ehidden');
      await card.getByText('The file is new.').waitFor();
      expect(await card.locator('pre mark').innerText()).toBe('\\u202e');
      await card.getByText('As a rule for all conversations').click();
      await card.getByRole('button', { name: 'Copy the rule' }).click();
      await expect.poll(() => card.locator('.rule .link').innerText()).toBe('Copied');
      expect(await textOf(card.locator('.rule'))).toContain('with exactly this path, whatever its content');
      expect(await textOf(card.locator('.rule'))).toContain('parley reload');
      await card.getByRole('button', { name: 'Edit arguments' }).click();
      expect(await card.getByLabel('New arguments').inputValue()).toContain('\\n\\n\\u202ehidden"');
    },
  );

  it('a write over a file shows the difference against the file as it is now, with line numbers, and all of its content', async () => {
    const page = await stage.begin('overwrite', 'overwrite');
    const card = page.locator('.ask-card');
    await card.locator('.diff .gone').waitFor();
    const numbered = (kind: string) =>
      card
        .locator(`.diff .${kind}`)
        .evaluateAll((all) => all.map((one) => [one.getAttribute('data-number'), one.textContent]));
    expect(await numbered('gone')).toEqual([['30', `removed: line 30 ${'x'.repeat(200)}`]]);
    expect(await numbered('added')).toEqual([['30', `added: thirty ${'x'.repeat(200)}`]]);
    expect(await card.locator('.diff .line').count()).toBe(9); // with the head of the hunk
    await card.getByText('whole content').click();
    expect(await card.locator('.fold pre').first().innerText()).toBe(LONG.replace('line 30', 'thirty'));
    await writeFile(
      join(stage.project.root, 'project/long.md'),
      LONG.replace('line 30', 'changed meanwhile'),
    );
    await expect
      .poll(async () => (await numbered('gone')).join(), { timeout: 20_000 })
      .toContain('meanwhile');
    await writeFile(join(stage.project.root, 'project/long.md'), LONG);
  });

  itLong(
    'the key of an answer leads to the end of a call that was not in sight, and answers when it is pressed again',
    async () => {
      await post('unread', 'long');
      const page = await stage.look('#/inbox');
      const detail = await openItem(page, 'long');
      const readOn = detail.getByRole('button', { name: 'Read on to answer' });
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('ArrowDown');
      await readOn.waitFor();
      await page.keyboard.press('a');
      await page.keyboard.press('a'); // within a moment: a typed word answers nothing
      await readOn.waitFor({ state: 'detached' });
      await expect.poll(() => isInWindow(detail.locator('.call-end'))).toBe(true);
      expect(await detail.getByRole('button', { name: 'Approve' }).count()).toBe(1);
      await pressAlone(page, 'd');
      await detail.waitFor({ state: 'detached' });
    },
  );

  itLong('a call that was answered shows its arguments as before its answer', async () => {
    const page = await stage.begin('shown-after', 'shell');
    const card = page.locator('.ask-card');
    await card.waitFor();
    const before = await card.locator('.argument').allInnerTexts();
    expect(before[0]).toContain('\nrm -rf /the/end');
    await card.getByRole('button', { name: 'Deny' }).click();
    const call = page.locator('.call:not(.waiting)');
    await call.locator('summary').click();
    expect(await call.locator('.argument').allInnerTexts()).toEqual(before);
  });

  itLong('who answered one of several calls is below that call while the others wait', async () => {
    const page = await stage.begin('three', 'three calls');
    await page.setViewportSize({ width: 1280, height: 1800 });
    await expect.poll(() => page.locator('.ask-card.seen').count()).toBe(3);
    await page.getByRole('button', { name: 'Approve' }).nth(1).click();
    const answered = page.getByText(/^Approved/);
    await answered.waitFor();
    const [line, call] = [await answered.boundingBox(), await page.locator('.call').nth(1).boundingBox()];
    const tool = await page.locator('.call').nth(1).locator('.tool').boundingBox();
    if (!line || !call || !tool) throw new Error('not shown');
    expect(line.x + line.width).toBeLessThanOrEqual(call.x + call.width);
    expect(line.y).toBeGreaterThanOrEqual(tool.y + tool.height);
    await page.locator('.call').nth(1).getByText('waits for the calls before it').waitFor();
  });

  itLong(
    'other arguments cannot run once another person has answered: the words are in sight, the button is disabled',
    async () => {
      await post('overtaken', 'edit, then overtaken');
      const page = await stage.look('#/inbox', { viewport: { width: 1280, height: 800 } });
      const detail = await openItem(page, 'then overtaken');
      await detail.getByRole('button', { name: 'Edit arguments' }).click();
      await detail.getByLabel('New replace').fill('a line\n'.repeat(40));
      const run = detail.getByRole('button', { name: 'Run with these arguments' });
      await expect.poll(() => run.isEnabled()).toBe(true);
      const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
        'GET',
        'conversations/overtaken/approvals',
      );
      await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, {
        answer: 'deny',
        publisher: 'alice',
      });
      const over = detail.getByText('alice denied this call first. Your text is kept in its conversation.');
      await over.waitFor();
      expect(await isInWindow(over)).toBe(true);
      expect(await run.isEnabled()).toBe(false);
      await detail.getByText('the file as it was, and with this call').waitFor();
      expect(await detail.getByText('the file as it is now').count()).toBe(0);
    },
  );

  it('Cancel discards other arguments also after the answer of another person, and leads on', async () => {
    await post('cancelled', 'sleep, then cancelled');
    const page = await stage.look('#/inbox');
    const detail = await openItem(page, 'then cancelled');
    await detail.getByRole('button', { name: 'Edit arguments' }).click();
    await detail.getByLabel('New command').fill('echo else');
    await detail.getByText('The call runs with these arguments').waitFor();
    const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
      'GET',
      'conversations/cancelled/approvals',
    );
    await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, { answer: 'deny', publisher: 'alice' });
    await detail.getByText('alice denied this call first. Your text is kept in its conversation.').waitFor();
    expect(await detail.getByText('The call runs with these arguments').count()).toBe(0);
    await detail.getByRole('button', { name: 'Cancel' }).click();
    await inboxItem(page, 'then cancelled').waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toMatch(/^Discarded: shell sleep/);
    await page.evaluate("location.hash = '#/c/cancelled'");
    await message(page, 'Noted: ').waitFor();
    expect(await page.getByText('not sent').count()).toBe(0);
  });

  it('after Esc in the field of other arguments, `a` runs the call with them, and the notice in the inbox names those', async () => {
    await post('other-ones', 'sleep, with other ones');
    const page = await stage.look('#/inbox');
    const detail = await openItem(page, 'other ones');
    await detail.getByRole('button', { name: 'Edit arguments' }).click();
    await detail.getByLabel('New command').fill('echo else');
    await detail.getByText('The call runs with these arguments').waitFor();
    await page.keyboard.press('Escape');
    await pressAlone(page, 'a');
    await detail.waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toMatch(
      /^Approved with changed arguments by \w+: shell echo else/,
    );
  });

  itLong('arguments that are edited are in sight at once', async () => {
    await post('in-sight', 'stale');
    await writeFile(join(stage.project.root, 'project/plan.md'), 'four');
    const page = await stage.look('#/inbox', { viewport: { width: 1280, height: 420 } });
    const detail = await openItem(page, 'stale');
    await detail.getByRole('button', { name: 'Edit arguments' }).click();
    const replace = detail.getByLabel('New replace');
    await expect.poll(() => isInWindow(replace)).toBe(true);
    await replace.fill('a long line '.repeat(99)); // the difference above grows
    await detail.locator('.diff', { hasText: 'a long line' }).waitFor();
    expect(await isInWindow(replace)).toBe(true);
    expect((await replace.boundingBox())?.height).toBeGreaterThan(100);
  });

  itLong(
    'an edit shows its place in the file, and one that does not fit says so before it is approved',
    async () => {
      await writeFile(join(stage.project.root, 'project/plan.md'), 'one\ntwo\nthree\n');
      const page = await stage.begin('place', 'edit');
      const card = page.locator('.ask-card');
      await expect.poll(() => card.locator('.diff .gone[data-number="2"]').count()).toBe(1);
      await post('stale', 'stale');
      await page.evaluate("location.hash = '#/c/stale'");
      await card
        .getByText('No difference can be shown: the text to find is not in @project/plan.md')
        .waitFor();
      expect(await card.locator('.diff .gone').count()).toBeGreaterThan(0);
    },
  );

  itLong(
    'the form of a server that another tab sent says who answered, and keeps what was filled in here',
    async () => {
      const page = await stage.begin('twice', 'book');
      await page.getByRole('button', { name: 'Approve' }).click();
      const other = await stage.look('#/c/twice');
      await other.getByLabel('Day').fill('Monday');
      expect(await other.getByRole('group', { name: 'program asks' }).ariaSnapshot()).toMatch(
        /textbox "Day In this week"[\s\S]*combobox "row \(optional\)":\s+- option "no answer" \[selected\]\s+- option "front"/,
      ); // as it is spoken
      await page.getByLabel('Day').fill('Friday');
      await page.getByRole('button', { name: 'Send this answer' }).click();
      await message(page, 'Noted: ').waitFor();
      await other.locator('.answered', { hasText: ' by ' }).first().waitFor();
      await expect
        .poll(() => other.getByLabel('Your answer, not sent').inputValue())
        .toBe('{"seats":2,"day":"Monday"}');
      expect(await page.getByLabel('Your answer, not sent').count()).toBe(0);
      expect(await other.getByLabel('Message').inputValue()).toBe('');
    },
  );

  it('on a phone, what a person answered or gave as a reason is not cut, and the answer is in full where its call is unfolded', async () => {
    const name = 'lindqvist@'.repeat(20);
    await post('whole', 'book');
    const page = await stage.look('#/c/whole', {
      viewport: { width: 320, height: 640 },
      hasTouch: true,
      isMobile: true,
    });
    await page.getByRole('button', { name: 'Approve' }).tap();
    await page.getByLabel('Day').fill('Friday'.repeat(9));
    await page.getByLabel('note').fill(name);
    await page.getByText('waits for a person: 1 of 2: asking').waitFor();
    expect(await textsCut(page)).toEqual([]);
    await page.getByRole('button', { name: 'Send this answer' }).press('Enter');
    await message(page, 'Noted: ').waitFor();
    await write(page, 'sleep');
    await page.getByLabel('Reason').waitFor();
    const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
      'GET',
      'conversations/whole/approvals',
    );
    const denied = { answer: 'deny', reason: name, publisher: 'alice' };
    await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, denied);
    await page.getByText('Denied by alice').waitFor();
    await expect.poll(() => textsCut(page)).toEqual([]);
    const call = page.locator('.call').first();
    await call.locator('summary').first().press('Enter');
    await call.getByRole('heading', { name: /^Answer of / }).waitFor();
    expect(await call.locator('pre').nth(1).innerText()).toContain(`"note": "${name}"`);
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 640 });
      await expect.poll(() => textsCut(page)).toEqual([]);
    }
  });

  it('the form of a server is answered in the inbox, and a notice says where the answer went', async () => {
    const page = await stage.begin('booked', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByLabel('Day').waitFor();
    await page.evaluate("location.hash = '#/inbox'");
    const asked = await openItem(page, 'book');
    await asked.getByLabel('Day').fill('Friday');
    await asked.getByRole('button', { name: 'Send this answer' }).click();
    await expect.poll(() => textOf(page.getByRole('alert'))).toMatch(/^Sent to “program”: .* Friday/);
  });

  itLong('a text for a question that another person answered is for the agent that asked', async () => {
    const page = await stage.begin('of-qa', '@qa ask');
    await page.getByLabel('Your answer').pressSequentially('this');
    await post('of-qa', 'all', { to: ['qa'], author: { name: 'Bob' } });
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('@qa this');
  });

  itLong(
    'what was filled in is in the form again when the daemon was killed and the call runs again',
    async () => {
      const page = await stage.begin('killed', 'book');
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.getByLabel('Day').fill('Sunday');
      await stage.kill();
      await stage.restart();
      await page.getByRole('button', { name: 'Run it again' }).press('Enter'); // it is where another button was
      await expect.poll(() => page.getByLabel('Day').inputValue()).toBe('Sunday');
      await page.getByRole('button', { name: 'Deny' }).click();
      await message(page, 'Noted').waitFor();
    },
  );

  it('Enter leads from a choice to the next field, and the limits of a number are at its field', async () => {
    const page = await stage.begin('enter', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByLabel('Day').pressSequentially('Mon');
    await page.keyboard.press('Shift+Enter'); // stays
    await page.keyboard.type('day');
    expect(await page.getByLabel('Day').inputValue()).toBe('Monday');
    await page.getByLabel('row').focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('checkbox');
    const seats = page.locator('.edit-arguments label').filter({ hasText: 'seats' });
    expect(await textOf(seats)).toMatch(/seats \(optional\)\s+at least 1/);
    await page.getByRole('button', { name: 'Deny' }).click();
    await message(page, 'Noted: ').waitFor();
  });

  it('a call that failed while its form waited does not say that it took less time than that', async () => {
    const page = await stage.begin('hurried', 'hurry');
    await page.getByRole('button', { name: 'Approve' }).click();
    await message(page, 'Noted: ').waitFor();
    expect(await textOf(page.locator('.call').first())).toMatch(
      /failed after [\d.]+ m?s and the wait for a person[\s\S]*timed out/,
    );
  });

  it('after Esc in the form of a server, `a` sends it', async () => {
    const page = await stage.begin('form-by-key', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByLabel('Day').fill('Friday');
    await page.keyboard.press('Escape');
    await pressAlone(page, 'a');
    expect(await textOf(message(page, 'Noted: '))).toContain('Friday');
  });

  it('the field of a reason says what sends it, as Enter does not', async () => {
    const page = await stage.begin('reasoned', 'sleep');
    const card = page.locator('.ask-card');
    await card.getByPlaceholder('Reason (optional), then Approve or Deny').waitFor();
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByPlaceholder('Reason (optional), then Run').waitFor();
    await card.getByLabel('Reason').press('Enter');
    await card.getByRole('button', { name: 'Cancel' }).click();
    await card.getByRole('button', { name: 'Deny' }).click();
    await message(page, 'Noted: ').waitFor();
  });

  it('what is allowed for this conversation is named by its kind where its value is long, since that is above in full', async () => {
    const page = await stage.begin('same', 'shell');
    expect(await textOf(page.locator('.ask-card'))).toContain(
      'also approves later calls of shell with this same command by Lena Lead, in this',
    );
  });

  itLong('a box that was not touched is no answer', async () => {
    const page = await stage.begin('untouched', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByLabel('Day').fill('Monday');
    await page.getByRole('button', { name: 'Send this answer' }).click();
    expect(await textOf(message(page, 'Noted: '))).not.toContain('window');
  });

  itLong('a form with other fields gets nothing of what was written for an earlier one', async () => {
    const page = await stage.begin('sly', 'sly');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByLabel('note').fill('a secret');
    for (let n = 0; n < 2; n++) await page.getByLabel('sure').click();
    await page.getByRole('button', { name: 'Send this answer' }).click();
    const answer = await textOf(message(page, 'Noted: '));
    expect(answer).toContain('"sure":false');
    expect(answer).not.toContain('secret');
  });

  it('a call shows its progress, and a question of its server is a form whose answer goes to that server', async () => {
    const page = await stage.begin('book', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    const card = page.getByRole('group', { name: 'program asks' });
    expect(await textOf(card)).toContain(
      'The server “program”, a program outside of Parley, asks “Which day?”',
    );
    expect(await textOf(card)).toContain('give it no passwords or keys');
    await page.getByText('waits for a person: 1 of 2: asking').waitFor();
    expect(await textOf(card)).toMatch(/note \(optional\)/);
    await page.getByLabel('Message').press('Escape');
    await page.keyboard.press('ArrowDown');
    await pressAlone(page, 'r'); // to its first field
    await page.keyboard.press('Enter'); // it is required
    expect(await page.evaluate('document.activeElement.validity.valueMissing')).toBe(true);
    await page.keyboard.type('monday');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Delete');
    await page.keyboard.type('3');
    await page.keyboard.press('Tab');
    await page.keyboard.press('b'); // of the row, back
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    await page.reload(); // what is written is kept
    await card.getByLabel('window').focus();
    await page.keyboard.press('Control+Enter');
    await message(page, /Noted/).waitFor();
    expect(await card.count()).toBe(0);
    expect(await textOf(message(page, 'Noted'))).toContain(
      '{"day":"monday","seats":3,"row":"back","window":true}',
    );
    expect(await textOf(page.locator('.call'))).toContain(
      'program asked “Which day?” and got {"day":"monday","seats":3',
    );
    expect(await textOf(page.locator('.call'))).toMatch(/Approved by \w+.*"window":true\} from \w+/s);
  });

  itLong(
    'a field for several choices has a box for each, and after the approval of its call a key answers nothing in a text',
    async () => {
      const page = await stage.begin('several', 'survey');
      const approve = page.getByRole('button', { name: 'Approve' });
      await approve.focus();
      await page.keyboard.press('Enter');
      const form = page.getByRole('group', { name: 'program asks' });
      await form.waitFor();
      await pressAlone(page, 'z');
      expect(await page.getByLabel('Message').inputValue()).toBe('');
      await form.getByLabel('Name').fill('Ada');
      const several = form.getByRole('group', { name: 'extras' });
      for (const choice of ['A bag', 'A meal', 'A bag']) await several.getByLabel(choice).click();
      await form.getByLabel('Name').press('Enter'); // there are other fields
      expect(await page.evaluate('document.activeElement.localName')).toBe('select');
      await several.getByLabel('A meal').focus();
      await page.keyboard.press('Enter'); // the last field leads to the button
      await page.keyboard.press('Enter');
      expect(await textOf(message(page, 'Noted: '))).toContain('{"name":"Ada","extras":["food"]}');
    },
  );

  itLong('in a small window, Tab brings each field of a form whole into sight', async () => {
    const page = await stage.begin('form', 'book');
    await page.getByRole('button', { name: 'Approve' }).click();
    const day = page.getByRole('group', { name: 'program asks' }).getByLabel('Day In this week');
    await day.waitFor();
    const isWhole = () =>
      page.evaluate<boolean>(`(() => {
        const field = document.activeElement;
        const { left, top, bottom } = field.getBoundingClientRect();
        return [top + 1, bottom - 1].every((y) => document.elementFromPoint(left + 6, y) === field);
      })()`);
    for (const [width, height] of [
      [320, 640],
      [640, 410],
    ] as const) {
      await page.setViewportSize({ width, height });
      await day.focus();
      for (const field of ['day', 'seats', 'row', 'window', 'note']) {
        await expect.poll(isWhole, { message: `${field}, ${width} pixels` }).toBe(true);
        await page.keyboard.press('Tab');
      }
      expect(await page.evaluate('document.activeElement.innerText')).toContain('Send this answer');
    }
  });

  itLong('an approval of a foreign tool hides no argument, and shows each as it runs', async () => {
    const page = await stage.begin('foreign', 'foreign');
    const card = page.locator('.ask-card');
    await card.waitFor();
    expect(await card.locator('.diff').count()).toBe(0);
    expect(await card.locator('.argument').allInnerTexts()).toEqual([
      'old_string\n\npay\nmallory',
      'new_string\n\npay\nmallory',
      'sum 12345678901234567000',
      'to "a\\u202eb"',
    ]);
    const canonical = String.raw`{"old_string":"pay\nmallory","new_string":"pay\nmallory","sum":12345678901234567000,"to":"a\u202eb"}`;
    const listed = await stage.api<{ approvals: unknown[] }>('GET', 'approvals?conversation=foreign');
    expect(listed.approvals).toMatchObject([{ arguments: canonical }]);
    const shown = await stage.project.parley('approvals', 'foreign');
    expect(shown.stdout).toContain(`mcp__program__surroundings ${canonical}`);
  });

  itLong.each(['long', 'edit', 'foreign'])(
    'on a phone, a call that waits is shown from its beginning, in full, and its answers come after it: %s',
    async (kind) => {
      await post(`phone-${kind}`, kind);
      const phone = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };
      const page = await stage.look(`#/c/phone-${kind}`, phone);
      await page.locator('.ask-card .argument').first().waitFor();
      const look = () =>
        page.evaluate<{ begins: number; cut: number; shown: number; approve: number }>(`(() => {
          const top = (element) => element.getBoundingClientRect().top;
          const card = document.querySelector('.ask-card');
          const thread = document.querySelector('.thread');
          const all = [...card.querySelectorAll('.argument, .argument > *')];
          return {
            begins: top(card.closest('.call')) - top(thread),
            cut: all.filter((one) => one.scrollHeight > one.clientHeight + 1 && one.clientHeight > 0).length,
            shown: Math.max(...all.map((one) => one.getBoundingClientRect().bottom)),
            approve: top([...card.querySelectorAll('button')].find((one) => one.innerText === 'Approve')),
          };
        })()`);
      await expect.poll(async () => Math.round((await look()).begins)).toBe(0);
      const { cut, shown, approve } = await look();
      expect(cut).toBe(0);
      expect(approve).toBeGreaterThan(shown);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
      const deny = page.locator('.ask-card').getByRole('button', { name: 'Deny' });
      const readOn = page.getByRole('button', { name: 'Read on to answer' });
      await readOn.or(page.locator('.ask-card.seen')).waitFor();
      if (await readOn.isVisible()) await readOn.tap();
      await page.locator('.ask-card.seen').waitFor();
      await deny.press('Enter'); // it is where another button was
      await message(page, 'Noted:').waitFor();
      await expect.poll(() => page.locator('.newest').count()).toBe(0); // the view follows what comes after the answer
    },
  );

  it('a person changes the arguments of a call: it runs with those, and the thread and the agent know who changed them', async () => {
    await post('changed', 'write');
    const phone = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };
    const page = await stage.look('#/c/changed', phone);
    const card = page.locator('.ask-card');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    const field = card.getByLabel('New arguments');
    const run = card.getByRole('button', { name: 'Run with these arguments' });
    expect(await page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA');
    expect(await card.getByRole('button', { name: /Approve|Deny/ }).count()).toBe(0);
    await card.getByRole('button', { name: 'Cancel' }).press('Enter'); // it is where another button was
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Edit arguments');
    await page.keyboard.press('Enter');
    await field.fill('{"path": "@project/b.md", "content": ');
    expect(await run.isDisabled()).toBe(true);
    await field.fill('{"path": "@project/b.md", "content": 7}');
    const readOn = async () => {
      await card.getByRole('button', { name: 'Read on to answer' }).tap();
      await card.locator('.read-on').waitFor({ state: 'detached' });
    };
    await readOn();
    await run.click();
    expect(await textOf(page.getByRole('alert'))).toMatch(/with these arguments: fs_write: .*content/);
    await field.fill('{"path": "@project/b.md", "content": "B"}');
    const proposal =
      /content\s+B\s[\s\S]*as asked for, before the change\s+path "@project\/a\.md"\s+content\s+# A/;
    await expect.poll(() => textOf(card.locator('.whole-call'))).toMatch(proposal);
    await readOn(); // it is another file
    await run.click();
    await message(page, 'Noted:').waitFor();
    expect(await readFile(join(stage.project.root, 'project/b.md'), 'utf8')).toBe('B');
    const call = page.locator('.call').first();
    expect(await textOf(call)).toMatch(/Approved with changed arguments by/);
    await call.locator('summary').first().click();
    expect(await textOf(call)).toMatch(proposal);
    expect(await textOf(message(page, 'Noted:'))).toMatch(
      /changed the arguments of this call.*path: "@project\/b\.md"/,
    );
  });

  itLong(
    'while arguments are edited, the difference is that of the edited arguments, and only what it showed can run',
    async () => {
      await writeFile(join(stage.project.root, 'project/terms.md'), 'net 30\n');
      const page = await stage.begin('other-file', 'overwrite');
      const card = page.locator('.ask-card');
      const shown = () => card.locator('.diff .line:not(.same)').allTextContents();
      await expect.poll(shown).toHaveLength(2);
      const { open: release, passed: held } = gate();
      await page.route('**/approvals/*/change', async (route) => {
        if (route.request().method() === 'POST') await held;
        await route.continue();
      });
      await card.getByRole('button', { name: 'Edit arguments' }).click();
      const run = card.getByRole('button', { name: 'Run with these arguments' });
      expect(await run.isDisabled()).toBe(false); // they are those of the call, whose difference is shown
      await card.getByLabel('New path').fill('@project/terms.md');
      expect(await run.isDisabled()).toBe(true);
      await card.getByText('before your last change of the arguments').waitFor();
      expect(await card.getByText('the file as it is now, and after this call').count()).toBe(0);
      release();
      await card.getByText('the file as it is now, and after this call').waitFor();
      expect(await shown()).toContain('removed: net 30');
      expect(await textOf(card.locator('.argument', { hasText: 'path' }).first())).toContain(
        '@project/terms.md',
      );
      await card.getByLabel('New content').fill('net 14\n');
      await expect.poll(shown).toEqual(['removed: net 30', 'added: net 14']);
      await card.getByLabel('New path').fill('../outside.md');
      await card.getByText('No difference can be shown: with these arguments: ').waitFor();
      expect(await run.isDisabled()).toBe(false); // the daemon says it again
      await card.getByRole('button', { name: 'Cancel' }).click();
      await expect
        .poll(shown)
        .toEqual([`removed: line 30 ${'x'.repeat(200)}`, `added: thirty ${'x'.repeat(200)}`]);
      await card.getByRole('button', { name: 'Edit arguments' }).click();
      await card.getByLabel('New path').fill('@project/terms.md');
      await card.getByLabel('New content').fill('net 7\n');
      await expect.poll(shown).toEqual(['removed: net 30', 'added: net 7']);
      await card.getByRole('button', { name: 'Read on to answer' }).click(); // it is another file
      await card.locator('.read-on').waitFor({ state: 'detached' });
      await run.click();
      await message(page, 'Noted:').waitFor();
      expect(await readFile(join(stage.project.root, 'project/terms.md'), 'utf8')).toBe('net 7\n');
    },
  );

  it('another file in edited arguments is overwritten only once its difference was in sight', async () => {
    const file = join(stage.project.root, 'project/hours.md');
    await writeFile(file, 'open\n'.repeat(80));
    const page = await stage.begin('unseen', 'overwrite');
    const card = page.locator('.ask-card');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByLabel('New path').fill('@project/hours.md');
    const run = card.getByRole('button', { name: 'Run with these arguments' });
    await expect.poll(() => card.locator('.diff', { hasText: 'open' }).count()).toBe(1);
    await card.getByRole('button', { name: 'Read on to answer' }).waitFor();
    await run.click();
    await expect.poll(() => isInWindow(card.locator('.call-end'))).toBe(true);
    expect(await readFile(file, 'utf8')).toMatch(/^open/);
    await card.locator('.read-on').waitFor({ state: 'detached' });
    await expect.poll(() => isInWindow(run)).toBe(true);
    await run.click();
    await message(page, 'Noted:').waitFor();
    expect(await readFile(file, 'utf8')).not.toMatch(/^open/);
  });

  it('an approval of a difference that does not hold any more is refused, and the new difference is shown', async () => {
    const file = join(stage.project.root, 'project/terms.md');
    await writeFile(file, 'net 30\n');
    const page = await stage.begin('outdated', 'terms');
    const card = page.locator('.ask-card');
    const shown = () => card.locator('.diff .line:not(.same)').allTextContents();
    const approve = card.getByRole('button', { name: 'Approve' });
    const edited = card.getByRole('button', { name: 'Run with these arguments' });
    for (const answer of hasLongTests ? [approve, edited] : [approve]) {
      await writeFile(file, 'net 30\n');
      await expect.poll(shown).toEqual(['removed: net 30', 'added: net 60']);
      if (answer !== approve) {
        await card.getByRole('button', { name: 'Read on to answer' }).click(); // the file has changed
        await card.getByRole('button', { name: 'Edit arguments' }).click();
      }
      const { open: release, passed: held } = gate();
      await page.route('**/approvals/*/change', (route) => held.then(() => route.continue()));
      await writeFile(file, 'net 90\n');
      await answer.press('Enter'); // it may be where another button was
      await page.getByRole('alert').getByText('the file changed since the difference was shown').waitFor();
      release();
      await expect.poll(shown).toEqual(['removed: net 90', 'added: net 60']);
      await page.unroute('**/approvals/*/change');
      expect(await readFile(file, 'utf8')).toBe('net 90\n');
    }
    await (hasLongTests ? edited : approve).press('Enter');
    await message(page, 'Noted:').waitFor();
    expect(await readFile(file, 'utf8')).toBe('net 60\n');
    await stage.endOfTest(/status of 409/);
  });

  itLong('a difference that changes while it is shown is answered when the new one was read', async () => {
    const file = join(stage.project.root, 'project/terms.md');
    await writeFile(file, 'net 30\n');
    const page = await stage.begin('changing', 'terms');
    const card = page.locator('.ask-card');
    const approve = card.getByRole('button', { name: 'Approve' });
    await card.locator('.diff').getByText('net 30').waitFor();
    await writeFile(file, 'net 45\n');
    const notice = card.getByText('The file has changed');
    await notice.waitFor();
    await page.locator('.ask-card.seen').waitFor();
    const readOn = await card.getByRole('button', { name: 'Read on to answer' }).boundingBox();
    const below = await card.getByText('Why it needs approval').boundingBox();
    expect((readOn?.y ?? 0) + (readOn?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0); // it covers nothing
    const always = card.getByRole('button', { name: 'Allow for this conversation' });
    expect(await always.isDisabled()).toBe(true);
    await approve.press('Enter');
    await notice.waitFor({ state: 'detached' });
    expect(await always.isDisabled()).toBe(false);
    expect(await readFile(file, 'utf8')).toBe('net 45\n');
    await approve.press('Enter');
    await message(page, 'Noted:').waitFor();
    expect(await readFile(file, 'utf8')).toBe('net 60\n');
  });

  itLong(
    'arguments that are texts are edited as texts, and the call runs with what was written',
    async () => {
      const page = await stage.begin('plain', 'sleep');
      const card = page.locator('.ask-card');
      await card.getByRole('button', { name: 'Edit arguments' }).click();
      const field = card.getByLabel('New command');
      expect(await field.inputValue()).toMatch(/^sleep/);
      await field.fill('echo "one"\necho two');
      expect(await page.evaluate('document.activeElement.value')).toBe('echo "one"\necho two');
      await card.getByRole('button', { name: 'Run with these arguments' }).click();
      await expect.poll(() => textOf(message(page, 'Noted:'))).toMatch(/one\s+two/);
    },
  );

  it('a reason that was written before or with other arguments goes along with them', async () => {
    const page = await stage.begin('with-reason', 'sleep');
    const card = page.locator('.ask-card');
    await card.getByLabel('Reason').fill('that is too');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByLabel('New command').fill('echo short');
    await card.getByLabel('Reason').fill('that is too long');
    await card.getByRole('button', { name: 'Run with these arguments' }).click();
    await expect.poll(() => textOf(message(page, 'Noted:'))).toMatch(/that is too long[\s\S]*short/);
  });

  it('the form of other arguments stays while a person writes, and a refusal is beside its button', async () => {
    const page = await stage.begin('form-stays', 'mixed');
    const card = page.locator('.ask-card');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    const field = card.getByLabel('New arguments');
    for (const all of [{}, { all: 'yes' }]) {
      const text = JSON.stringify({ ...EDIT, ...all });
      await field.fill(text);
      expect(await page.evaluate('document.activeElement.value')).toBe(text);
    }
    await card.getByRole('button', { name: 'Run with these arguments' }).click();
    const refusal = card.getByRole('alert').getByText('Not answered: with these arguments: fs_edit: ');
    await refusal.waitFor();
    expect(await isInWindow(refusal)).toBe(true);
    expect((await refusal.boundingBox())?.y).toBeLessThan(
      (await page.locator('.composer').boundingBox())?.y ?? 0,
    );
    expect(await page.locator('.notice').count()).toBe(0);
    await card.getByRole('button', { name: 'Cancel' }).click();
    expect(await card.getByRole('alert').count()).toBe(0);
    expect(await card.getByRole('button', { name: 'Approve' }).isVisible()).toBe(true);
  });

  it('outside of the field, the key that approves runs a call with the arguments that are being edited', async () => {
    const page = await stage.begin('by-key', 'sleep');
    const card = page.locator('.ask-card');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByLabel('New command').fill('echo edited');
    for (const key of ['Escape', 'ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
    await pressAlone(page, 'd');
    expect(await card.getByLabel('New command').inputValue()).toBe('echo edited');
    for (const key of ['ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
    await pressAlone(page, 'a');
    await expect.poll(() => textOf(message(page, 'Noted:'))).toContain('edited');
  });

  it('a key answers no other call of an entry while the arguments of one are being edited', async () => {
    const page = await stage.begin('one-edited', 'three');
    const cards = page.locator('.ask-card');
    await expect.poll(() => cards.count()).toBe(3);
    for (const place of [0, 1]) {
      await cards.nth(place).getByRole('button', { name: 'Edit arguments' }).click();
      await cards.nth(place).getByLabel('New command').fill('');
    }
    await page.keyboard.press('Escape');
    for (const key of ['a', 'd']) {
      for (const arrow of ['ArrowUp', 'ArrowDown']) await page.keyboard.press(arrow);
      await pressAlone(page, key);
      await expect.poll(() => textOf(page.getByRole('alert'))).toContain('Several calls wait here.');
      await page.getByRole('alert').getByRole('button', { name: 'Dismiss' }).click();
    }
    expect(await cards.count()).toBe(3);
  });

  it('an operator allows what a call covers for its conversation: the next such call runs, and the thread says by which entry', async () => {
    const page = await stage.begin('allowed', 'write');
    const card = page.locator('.ask-card');
    const allow = card.getByRole('button', { name: 'Allow for this conversation' });
    await allow.waitFor();
    const words = card.locator(`[id="${await allow.getAttribute('aria-describedby')}"]`);
    expect(await textOf(words)).toBe(
      '“Allow for this conversation” also approves later calls of fs_write with path "@project/a.md" by Lena Lead, in this conversation alone, until the agent is stopped.',
    );
    await allow.click();
    await page.getByText(/^Approved by \w+ for this conversation$/).waitFor();
    await post('allowed', 'write again');
    await page.getByText(/^Approved by \w+ for this conversation in entry \d+$/).waitFor();
    await page
      .getByText(/^Approved by .* in entry/)
      .getByRole('button', { name: 'Show entry' })
      .click();
    expect(await page.locator('.block.pointed .call').count()).toBe(1);
    expect(await page.locator('.block.pointed').innerText()).toMatch(
      /Approved by \w+ for this conversation$/,
    );
    expect(await card.count()).toBe(0);
    await post('allowed-not', 'write');
    await page.evaluate("location.hash = '#/c/allowed-not'");
    await allow.waitFor();
  });

  itLong('a call with an unknown outcome gets a result only with a text', async () => {
    const page = await stage.begin('unknown', 'sleep');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.locator('.call.running').waitFor();
    await page.goto('about:blank');
    await stage.kill();
    await stage.restart();
    await page.setViewportSize({ width: 320, height: 256 });
    const readOn = page.getByRole('button', { name: 'Read on to answer' });
    await expect
      .poll(async () => {
        await page.goto('about:blank'); // all of it may have been in sight while the page was loaded
        await page.goto(`${stage.url}/#/c/unknown`);
        return readOn.waitFor({ timeout: 3_000 }).then(
          () => true,
          () => false,
        );
      })
      .toBe(true);
    const field = page.getByLabel('What it returned');
    await field.evaluate((one) => one.scrollIntoView({ block: 'end' }));
    const isFree = await page.evaluate<boolean>(`(() => {
      const field = document.querySelector('.ask-card textarea');
      const { left, top, right, height } = field.getBoundingClientRect();
      return [left + 9, right - 9].every((x) => document.elementFromPoint(x, top + height / 2) === field);
    })()`);
    expect(await readOn.count()).toBe(1);
    expect(isFree).toBe(true); // nothing covers it
    await page.setViewportSize({ width: 1280, height: 720 });
    const returned = page.getByRole('button', { name: 'It returned this' });
    await returned.waitFor();
    expect(await returned.isDisabled()).toBe(true);
    const keys =
      "[...document.querySelectorAll('.decide button')].map(({ textContent, dataset }) => [dataset.key, textContent])";
    expect(await page.evaluate(keys)).toEqual([
      ['1', 'Run it again'],
      ['2', 'It did not run'],
      ['3', 'It returned this'],
    ]);
    const last = page.locator('article').filter({ hasText: 'continues its turn after a restart' });
    await last.waitFor();
    await expect.poll(() => isInWindow(last)).toBe(true);
    await page.locator('.ask-card.seen').waitFor(); // before, a key leads to its end
    for (const key of ['ArrowUp', 'ArrowUp']) await page.keyboard.press(key); // the last entry says that the turn continues
    await pressAlone(page, 'r');
    await page.keyboard.type('all ');
    await page.keyboard.press('Enter'); // a result may have several lines
    await page.keyboard.type('done');
    for (const key of ['Escape', 'ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
    await pressAlone(page, '3');
    await message(page, /Noted: all\s+done/).waitFor();
    const { entries } = await stage.api<{ entries: { content?: string | null }[] }>(
      'GET',
      'conversations/unknown/entries',
    );
    expect(entries.map(({ content }) => content)).toContain('all \ndone');
  });

  itLong('a new conversation has the focus in its message field', async () => {
    await post('listed', 'hello');
    const page = await stage.look();
    await page.locator('.row').first().waitFor();
    await page.keyboard.press('n');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer');
  });

  itLong('a typed reason and a draft are kept over switching, the timeline and a reload', async () => {
    await post('reasons', 'shell');
    await post('elsewhere', 'hello');
    const page = await stage.look('#/c/reasons');
    await page.getByLabel('Reason').fill('not on a Friday');
    await page.getByLabel('Message').fill('half a sentence');
    const isKept = async () => {
      await expect.poll(() => page.getByLabel('Reason').inputValue()).toBe('not on a Friday');
      await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('half a sentence');
    };
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.locator('.timeline svg').first().waitFor();
    await page.getByRole('link', { name: 'Thread', exact: true }).click();
    await isKept();
    await page.evaluate("location.hash = '#/c/elsewhere'");
    await message(page, 'Noted: hello').waitFor();
    await page.evaluate("location.hash = '#/c/reasons'");
    await isKept();
    await page.reload();
    await isKept();
    await page.getByRole('button', { name: 'Deny' }).click();
    await message(page, 'Noted:').waitFor();
    expect(
      await page.evaluate('Object.keys(sessionStorage).filter((key) => key.includes("draft.")).length'),
    ).toBe(1);
  });

  it('a failed tool is red and says why, and its output shows no control characters', async () => {
    const page = await stage.begin('failed', 'read');
    const row = page.locator('.call.failed');
    expect(await textOf(row)).toMatch(/NOT_FOUND|no such|none\.md/);
    expect(await textOf(row.locator('.failure'))).toMatch(/none\.md/);
    await post('failed', 'colours');
    const read = page.locator('.call.done');
    await read.locator('summary').first().click();
    const output = await textOf(read.locator('pre').last());
    expect(output).toContain('red and \\u202edetrevni');
    for (const hidden of ['\u001b', '\u202e', '[31m']) expect(output).not.toContain(hidden);
  });

  itLong(
    'a failed turn is red, says why in words, and can be tried again or given to another agent',
    async () => {
      const page = await stage.begin('fault', 'shout');
      const failed = page.locator('article.fault', { hasText: 'This turn failed' });
      await failed.waitFor();
      expect(await page.locator('.thread').innerText()).not.toContain('LLM_ERROR');
      const answer = message(page, 'So far so good');
      expect(await textOf(answer.locator('.failure'))).toMatch(/Ask less often\.\s*RATE_LIMITED/);
      await failed.getByRole('button', { name: 'Open the request' }).click();
      await page.locator('.answer-panel .account').waitFor();
      await page.evaluate("location.hash = '#/c/fault'");
      const again = failed.getByRole('button', { name: 'Try again' });
      expect(await again.getAttribute('title')).toMatch(/^Posts “Continue\.” to .* in your name$/);
      const other = await stage.look('#/c/fault');
      const sent: Promise<unknown>[] = [];
      let both: () => void = () => undefined;
      const areBoth = new Promise<void>((resolve) => {
        both = resolve;
      });
      for (const tab of [page, other]) {
        await tab.route('**/messages', (route) => areBoth.then(() => route.continue()));
        sent.push(tab.waitForRequest('**/messages'));
        await tab.getByRole('button', { name: 'Try again' }).click();
      }
      await Promise.all(sent);
      both();
      await message(page, 'I am back.').waitFor();
      await failed.getByRole('button', { name: 'Try again' }).waitFor({ state: 'detached' });
      await post('fault', 'done');
      await message(page, 'Noted: done').waitFor();
      expect(await message(page, 'I am back.').count()).toBe(1);
    },
  );

  it('a failed turn that another agent was asked to continue is closed: it leads to that turn, and offers no other action', async () => {
    const page = await stage.begin('passed-on', 'shout');
    const failed = page.locator('article.fault', { hasText: 'This turn failed' });
    await failed.getByRole('button', { name: 'Ask another agent' }).press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.title')).toContain('Please continue for');
    await failed.getByRole('button', { name: /Dev/ }).click();
    await message(page, /Noted: .*Please continue for/s).waitFor();
    expect(await textOf(failed)).toMatch(/Continued by Dev\b.*: entry \d+$/);
    expect(await failed.getByRole('button').count()).toBe(1);
    await failed.getByRole('button').click();
    expect(await textOf(page.locator('article.pointed'))).toContain('Please continue for');
  });

  itLong(
    'a turn whose request is too large names the next step, in the thread and in the inbox',
    async () => {
      const page = await stage.begin('large', 'huge');
      const failed = page.locator('article.fault', { hasText: 'This turn failed' });
      const advice = /Another try fails until this is fixed.*contextTokens.*start a new conversation/;
      expect(await textOf(failed)).toMatch(advice);
      expect(await failed.locator('.buttons > button').last().innerText()).toBe('Try again');
      await page.evaluate("location.hash = '#/inbox'");
      const item = await openItem(page, 'huge');
      await expect.poll(() => textOf(item)).toMatch(advice);
    },
  );

  itLong(
    'a failure that repeats until the configuration is changed says what to change, in the thread and in the inbox',
    async () => {
      const page = await stage.begin('locked', 'key');
      const failed = page.locator('article.fault', { hasText: 'This turn failed' });
      const advice = /Another try fails.*models\.default\.apiKey.*parley\.yaml.*parley doctor --probe/;
      expect(await textOf(failed)).toMatch(advice);
      expect(await failed.locator('.buttons > button').last().innerText()).toBe('Try again');
      await page.evaluate("location.hash = '#/inbox'");
      const item = await openItem(page, 'key');
      await expect.poll(() => textOf(item)).toMatch(advice);
    },
  );

  itLong('an older failed turn leads to the next turn of its agent, and offers no other action', async () => {
    const page = await stage.begin('older', 'key');
    const failed = page.locator('article.fault', { hasText: 'This turn failed' });
    await failed.waitFor();
    await post('older', 'hello');
    await message(page, 'Noted: hello').waitFor();
    expect(await textOf(failed)).toMatch(/Lena Lead began another turn: entry \d+/);
    expect(await failed.getByRole('button').count()).toBe(1);
    await failed.getByRole('button').click();
    expect(await textOf(page.locator('article.pointed'))).toContain('Noted: hello');
    expect(
      await page.evaluate("getComputedStyle(document.querySelector('article.pointed')).outlineStyle"),
    ).toBe('solid');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toContain('Noted: hello');
  });

  itLong('a question that could not be asked shows why in words', async () => {
    const page = await stage.begin('unasked', '@dev ask me');
    const card = page.locator('.ask-card.question');
    expect(await textOf(card)).toMatch(/Which one\?\s+.*no tool ask.*TOOL_NOT_AVAILABLE/);
    expect(await card.innerText()).not.toContain('{');
  });

  it('a turn that a person stopped continues with one click, also after Resume', async () => {
    const page = await stage.begin('continued', 'slowly');
    await page.locator('article.draft').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    const stopped = page.locator('article.note', { hasText: 'This turn was stopped by' });
    await stopped.waitFor();
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await page.locator('article.band', { hasText: 'The conversation was resumed' }).waitFor();
    await stopped.getByRole('button', { name: 'Continue' }).click();
    await message(page, 'I am back.').waitFor();
    await stopped.getByRole('button', { name: 'Continue' }).waitFor({ state: 'detached' });
  });

  itLong('a turn that a person stopped is no failure', async () => {
    const page = await stage.begin('ended', 'slowly');
    await page.locator('article.draft').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.locator('article.note', { hasText: 'This turn was stopped by' }).waitFor();
    expect(await page.locator('article.fault').count()).toBe(0);
  });

  itLong('a call that waited for a person when its turn was stopped says that it was not run', async () => {
    const page = await stage.begin('unrun', 'write it');
    await page.locator('.call', { hasText: 'waits for a person' }).waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.locator('.call .meta', { hasText: 'not run' }).waitFor();
  });

  itLong('a stop moves nothing of the partial answer, in no frame', async () => {
    const page = await stage.begin('still', 'slowly', 'word word');
    await page.evaluate(`{
      window.tops = new Set();
      const look = () => {
        const prose = document.querySelector('.by-agent .prose, .draft .prose, .interrupted .prose');
        window.tops.add(prose ? prose.getBoundingClientRect().top : 'gone');
        requestAnimationFrame(look);
      };
      look();
    }`);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.locator('article.note', { hasText: 'This turn was stopped by' }).waitFor();
    await page.locator('.band-title', { hasText: 'The conversation was stopped' }).waitFor();
    expect(await page.evaluate('[...window.tops].length')).toBe(1);
    expect((await page.locator('.thread').innerText()).replace(/\s+/g, ' ')).toMatch(
      /word The conversation was stopped .*This turn was stopped by/,
    );
  });

  itLong(
    'after a stop each agent is marked as stopped, and the header offers what fits the agents',
    async () => {
      const page = await stage.begin('stopped', 'hello', 'Noted: hello');
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      await page.locator('.people .chip.stopped', { hasText: 'Lena' }).waitFor();
      expect(await page.locator('.people .chip.stopped').count()).toBe(3);
      await page.getByText('The conversation is stopped').waitFor();
      await write(page, 'are you there?');
      await message(page, 'are you there?').waitFor();
      expect(await page.locator('.people .chip.stopped').count()).toBe(3);
      await write(page, '@lead speak up');
      await message(page, /Noted: .*speak up/).waitFor();
      await page.getByRole('button', { name: 'Resume', exact: true }).waitFor({ state: 'detached' });
      const others = page.getByText('Still stopped: Dev <b>Ops</b>, Quinn. They read this after');
      await others.getByRole('button', { name: 'Resume all' }).click();
      await expect.poll(() => page.locator('.people .chip.stopped').count()).toBe(0);
      await others.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      await expect.poll(() => page.locator('.people .chip.stopped').count()).toBe(3);
      await write(page, '@lead speak up again');
      await message(page, /Noted: .*speak up again/).waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('>all agents');
      await expect
        .poll(() => page.getByRole('dialog').getByRole('option').allInnerTexts())
        .toEqual(['Resume all agents', 'Stop all agents']);
      await page.keyboard.press('Escape');
      await page.mouse.move(0, 0);
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      await expect.poll(() => page.locator('.people .chip.stopped').count()).toBe(3);
      const resume = page.getByRole('button', { name: 'Resume', exact: true });
      await expect.poll(() => resume.isEnabled()).toBe(true);
      expect(await clickAgain(page)).toBe(false);
      await page.mouse.move(0, 0);
      await resume.click();
      await expect.poll(() => page.locator('.people .chip.stopped').count()).toBe(0);
    },
  );
});
