/**
 * Tools that are functions of the program which contains the daemon.
 *
 *   tool      `tool({ name, input, run })`: one tool, its schema and its results
 *   toolbox   the tools of one daemon
 *
 * Policy, approvals, audit and crash rules are those of every other tool: nothing here decides whether a call runs.
 */
export { type InProcessTool, type ToolCall, type ToolSpec, textOf, tool } from './tool.ts';
export { createInProcessTools } from './toolbox.ts';
