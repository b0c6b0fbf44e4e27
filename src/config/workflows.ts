import { join } from 'node:path';
import type { WorkflowSource } from './config.ts';
import { listFiles } from './list-files.ts';
import type { Problems } from './problems.ts';
import { parseMapping, readIfThere } from './yaml-file.ts';

/** Reads `workflows/<id>.yaml` as far as it being YAML; what its nodes mean is not known here. */
export async function loadWorkflows(directory: string, problems: Problems): Promise<WorkflowSource[]> {
  const folder = join(directory, 'workflows');
  const workflows: WorkflowSource[] = [];
  for (const name of await listFiles(folder, '.yaml', problems)) {
    const file = join(folder, name);
    const text = await readIfThere(file, problems);
    if (text === null) continue;
    const content = parseMapping(file, text, problems).data;
    workflows.push({ id: name.slice(0, -'.yaml'.length), file, content });
  }
  return workflows;
}
