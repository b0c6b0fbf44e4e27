import { withoutAnsi } from '../model/format.ts';
import { groupsOf } from '../model/list/inbox.ts';
import { workflowToStart } from '../state/commands.ts';
import { rows } from '../state/conversations.ts';
import { draftOf } from '../state/files.ts';
import { KIND_LABELS, needed } from '../state/inbox.ts';
import { writeTo } from '../state/keys.ts';
import { send } from '../state/outbox.ts';
import { linkTo, writeIn } from '../state/route.ts';
import { agents, identity, isOperator, mayPost, workflows } from '../state/session.ts';
import { absentAgents } from '../state/system.ts';
import { Composer } from './conversation/composer.tsx';
import { Button, NameFault, NameField, Select } from './parts/controls.tsx';
import { Avatar, BackLink, Name, SharedId } from './parts/parts.tsx';

/** What needs this person, then what runs, then where a conversation begins: who is in the team, and a message. */
export function StartPage() {
  const chosen = workflowToStart.value;
  const workflow = workflows.value.find(({ id }) => id === chosen) ?? null;
  const begin = async (content: string) => {
    const conversation = crypto.randomUUID().replaceAll('-', '');
    const message = { content, ...(workflow && { workflow: workflow.id }) };
    if (!(await send(conversation, message, draftOf('')))) return false;
    workflowToStart.value = '';
    writeIn(conversation);
    return true;
  };
  return (
    <main class="page start column">
      <header class="head abreast">
        <BackLink />
        <h2>{mayPost.value ? 'New conversation' : 'Parley'}</h2>
      </header>
      <div class="start-body column scrolls as-thread">
        <NeedsYou />
        <AtWork />
        <p class="lead">
          In Parley, people and agents work on one thread, and you see why each agent said what it said.
        </p>
        <NameQuestion />
        <h3 id="team" class="muted">
          Your team
        </h3>
        <ul class="team stacked-2" aria-labelledby="team">
          {agents.value.map(({ slug, name, description }) => (
            <li key={slug}>
              <AgentCard {...{ slug, name, description }} />
            </li>
          ))}
        </ul>
        {mayPost.value && <Starters />}
      </div>
      <Composer onPost={begin} place="" workflow={workflow}>
        {isOperator.value && workflows.value.length > 0 && (
          <label class="inline">
            <span class="muted">Workflow</span>
            <Select
              label="Workflow"
              value={chosen}
              options={[['', 'no workflow'], ...workflows.value.map(({ id }) => id)]}
              onChoose={(id) => (workflowToStart.value = id)}
            />
          </label>
        )}
      </Composer>
    </main>
  );
}

/** Of each list; the inbox and the list of conversations have the others. */
const MOST_SHOWN = 5;

function NeedsYou() {
  const groups = groupsOf(needed.value);
  if (groups.length === 0) return null;
  return (
    <section class="now" aria-label="Needs you">
      <h3 class="muted">Needs you</h3>
      <ul class="frame">
        {groups.slice(0, MOST_SHOWN).map(([first, ...others]) => (
          <li key={first.conversation}>
            <a class="wraps" href={linkTo.conversation(first.conversation)}>
              <bdi class="title">
                {withoutAnsi(first.title)} <SharedId id={first.conversation} title={first.title} />
              </bdi>
              <span class="waits">
                {KIND_LABELS[first.kind]}
                {others.length > 0 && ` and ${others.length} more`}
              </span>
            </a>
          </li>
        ))}
      </ul>
      <p>
        <a href={linkTo.inbox}>
          Answer in the inbox{groups.length > MOST_SHOWN && `: all ${needed.value.length}`}
        </a>
      </p>
    </section>
  );
}

function AtWork() {
  const needing = new Set(needed.value.map(({ conversation }) => conversation));
  const working = rows.value.filter((row) => row.running.length > 0 && !row.archived && !needing.has(row.id));
  if (working.length === 0) return null;
  return (
    <section class="now" aria-label="At work">
      <h3 class="muted">At work</h3>
      <ul class="frame">
        {working.slice(0, MOST_SHOWN).map(({ id, title, running }) => (
          <li key={id}>
            <a class="wraps" href={linkTo.conversation(id)}>
              <bdi class="title">{withoutAnsi(title ?? id)}</bdi>
              <span class="muted">
                {running.map((slug) => (
                  <Name key={slug} id={slug} />
                ))}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function AgentCard({ slug, name, description }: { slug: string; name: string; description: string }) {
  const card = (
    <>
      <Avatar id={slug} />
      <span>
        <bdi class="agent-name">{name}</bdi>
        <bdi class="muted">{description || `@${slug}`}</bdi>
        {absentAgents.value.has(slug) && <span class="absent">not connected</span>}
      </span>
    </>
  );
  if (!mayPost.value) return <div class="agent-card frame text-small">{card}</div>;
  return (
    <Button class="agent-card frame text-small" title={`Write to @${slug}`} onClick={() => writeTo(slug)}>
      {card}
    </Button>
  );
}

/** Asked until it is known; the field below the message changes it later. */
function NameQuestion() {
  if (!mayPost.value || identity.value?.name) return null;
  return (
    <div class="name-question wraps">
      <label for="name">What is your name?</label>
      <NameField id="name" placeholder="As the team should see it" />
      <NameFault />
    </div>
  );
}

const STARTERS = [
  'What can each of you do?',
  'I have a task. Ask me what you need to know, then make a plan.',
  'Review a text with me. I will paste it next.',
];

function Starters() {
  return (
    <div class="starters stacked-2">
      <h3 class="muted">Start with</h3>
      {STARTERS.map((text) => (
        <Button key={text} onClick={() => writeTo('', text)}>
          {text}
        </Button>
      ))}
    </div>
  );
}
