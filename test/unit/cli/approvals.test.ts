import { expect, it } from 'vitest';
import { ParleyError } from '../../../src/client/index.ts';
import { fakeDaemon, parley } from './support.ts';

it.each<[string[], object]>([
  [['approve', 'a1'], { answer: 'approve' }],
  [['approve', 'a1', '--arguments', '{"n":1}'], { answer: 'approve', arguments: { n: 1 } }],
  [['approve', 'a1', '--always'], { answer: 'approve', always: true }],
  [['approve', 'a1', '--reason', 'once'], { answer: 'approve', reason: 'once' }],
  [['deny', 'a1', '--reason', 'no'], { answer: 'deny', reason: 'no' }],
  [['resolve', 'a1', '--rerun'], { answer: 'rerun' }],
  [['resolve', 'a1', '--failed'], { answer: 'failed' }],
  [['resolve', 'a1', '--result', '{"n":1}'], { answer: 'result', result: { n: 1 } }],
])('%j answers the approval as the user', async (argv, answer) => {
  const daemon = fakeDaemon({ answer: { accepted: true } });
  expect((await parley(argv, { daemon })).code).toBe(0);
  const body = { approvalId: 'a1', publisher: 'alice', ...answer };
  expect(daemon.requests).toEqual([{ endpoint: 'answer', body }]);
});

it.each([[[]], [['--rerun', '--failed']], [['--result', 'no json']]])(
  '`parley resolve` refuses %j before it sends a request',
  async (options) => {
    const daemon = fakeDaemon({ answer: { accepted: true } });
    expect((await parley(['resolve', 'a1', ...options], { daemon })).code).not.toBe(0);
    expect(daemon.requests).toEqual([]);
  },
);

it.each(['{', '[1]', '"x"'])(
  '`parley approve --arguments` refuses %s before it sends a request',
  async (text) => {
    const daemon = fakeDaemon({ answer: { accepted: true } });
    const ran = await parley(['approve', 'a1', '--arguments', text], { daemon });
    expect(ran.code).not.toBe(0);
    expect(ran.err).toMatch(/--arguments is no JSON object: .*\n.*quote it/);
    expect(daemon.requests).toEqual([]);
  },
);

it('`parley approvals` lists open approvals with all arguments, however long', async () => {
  const common = { approvalId: 'a1', conversation: 'demo', agent: 'dev', tool: 'shell', risk: 'risky' };
  const long = JSON.stringify({ command: 'x'.repeat(70_000) });
  const approval = { ...common, arguments: long, mayHaveRun: false };
  const daemon = fakeDaemon({ approvals: { approvals: [approval], more: 3 } });
  const ran = await parley(['approvals'], { daemon });
  expect(ran.out).toContain(`dev wants to call shell ${long}\n`);
  expect(ran.err).toContain('3 more are pending');
});

it('`parley approvals` names the daemons that did not answer, since their approvals may be missing', async () => {
  const daemon = fakeDaemon({ approvals: { approvals: [], incomplete: ['D1', 'D2'] } });
  const ran = await parley(['approvals'], { daemon });
  expect(ran.err).toContain('the list may be incomplete: no answer from daemon D1, D2');
});

it('`parley approvals` escapes each character of the arguments that could hide or reorder what will run', async () => {
  const common = { approvalId: 'a1', conversation: 'demo', agent: 'dev', tool: 'shell', risk: 'risky' };
  const approval = { ...common, arguments: '{"command":"echo \u202egpj.exe\u009b2K é"}', mayHaveRun: false };
  const ran = await parley(['approvals'], { daemon: fakeDaemon({ approvals: { approvals: [approval] } }) });
  expect(ran.out).toContain('wants to call shell {"command":"echo \\u202egpj.exe\\u009b2K é"}');
});

it.each([
  ['permit_edit', true],
  ['shell', false],
])(
  'the difference that a coding agent shows is printed in lines below its call: %s',
  async (tool, isShown) => {
    const common = { approvalId: 'a1', conversation: 'demo', agent: 'dev', tool, risk: 'risky' };
    const shown = `--- a.txt\n+++ a.txt\n-old\n+new\u202e${'\n+more'.repeat(100)}`;
    const approval = { ...common, arguments: JSON.stringify({ path: 'a.txt', shown }), mayHaveRun: false };
    const ran = await parley(['approvals'], { daemon: fakeDaemon({ approvals: { approvals: [approval] } }) });
    expect(ran.out.includes('\n    -old\n    +new\\u202e\n    +more\n')).toBe(isShown);
    expect(ran.out.includes('\n    … (64 more lines)\n')).toBe(isShown);
  },
);

it('a question of a server says who asks, and its text ends no argument of the command', async () => {
  const asks = {
    server: 'files',
    message: "It's\u202e?",
    schema: { properties: { day: { type: 'string' } } },
  };
  const given = JSON.stringify({ day: "'; rm -rf ~; '" });
  const common = { approvalId: 'a1', conversation: 'demo', agent: 'dev', tool: 'book', risk: 'risky' };
  const approval = { ...common, arguments: given, mayHaveRun: false, asks };
  const ran = await parley(['approvals'], { daemon: fakeDaemon({ approvals: { approvals: [approval] } }) });
  expect(ran.out).toContain(
    "dev called book: the server “files”, a program outside of Parley, asks “It's\\u202e?”",
  );
  expect(ran.out).toContain(`--arguments '{"day":"\\u0027; rm -rf ~; \\u0027"}'`);
});

it.each([
  [['approve', 'a1'], 'rerun, result, failed', 'parley resolve a1 --rerun | --failed | --result JSON'],
  [['deny', 'a1'], 'rerun, result, failed', 'parley resolve a1 --rerun | --failed | --result JSON'],
  [['resolve', 'a1', '--rerun'], 'approve, deny', 'parley approve a1` or `parley deny a1'],
])('%j on a call that needs another answer names the command that gives it', async (argv, fitting, named) => {
  const refused = new ParleyError('ANSWER_DOES_NOT_FIT', 'it does not fit', { hint: `answer ${fitting}` });
  const ran = await parley(argv, { daemon: fakeDaemon({ answer: refused }) });
  expect(ran.code).toBe(1);
  expect(ran.err).toBe(`parley: it does not fit\n  answer ${fitting}\n  \`${named}\`\n`);
});
