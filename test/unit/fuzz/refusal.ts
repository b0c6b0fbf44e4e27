import { ParleyError } from '../../../src/kernel/index.ts';

/** Null: taken. Rejects with what is no refusal. */
export async function refusalBy(work: () => unknown): Promise<ParleyError | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (error instanceof ParleyError) return error;
    throw error;
  }
}
