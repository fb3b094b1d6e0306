/** Reports the progress of long work: the current step, and how much of it is done if known. Called synchronously. */
export type ReportProgress = (what: string, done?: number, total?: number) => void

/** Entries between two progress reports. */
export const STEP_ENTRIES = 1024
