/** Told while long work goes on: what is being done, and how much of it is done where that is known. Called synchronously. */
export type ReportProgress = (what: string, done?: number, total?: number) => void

/** Entries between two calls. */
export const STEP_ENTRIES = 1024
