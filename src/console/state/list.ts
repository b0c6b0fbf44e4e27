import { computed, signal } from '@preact/signals';
import { type ListFilter, listed } from '../model/list/list.ts';
import { begun, rows } from './conversations.ts';
import { isNew, pins } from './marks.ts';
import { me, myIds } from './session.ts';

/** The list of conversations as it is shown. */

export const filter = signal<ListFilter>({ shown: 'all', agent: '', phase: '', text: '' });

/** The filters are shown although none is set. */
export const isFilterOpen = signal(false);

export function narrow(change: Partial<ListFilter>): void {
  filter.value = { ...filter.value, ...change };
}

export const found = computed(() => {
  const known = { pins: pins.value, mine: myIds.value, isUnread: isNew };
  const mine = begun.value.map((row) => ({ ...row, people: [me.value] }));
  return [mine, rows.value].flatMap((some) => listed(some, filter.value, known));
});

/** The filters besides the text. */
export const isFiltered = computed(() => {
  const { shown, agent, phase } = filter.value;
  return shown !== 'all' || agent !== '' || phase !== '';
});
