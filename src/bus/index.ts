export * from './port.ts';
export { ANY, createSubjects, type Subjects } from './subjects.ts';
