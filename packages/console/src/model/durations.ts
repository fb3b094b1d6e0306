/** Formats a duration with at most two units. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m ${two(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours} h ${two(minutes % 60)} m`
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`
}

/** Formats how long something took; short times with one decimal, so that they can be compared. */
export function took(ms: number): string {
  return ms < 9_950 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : span(ms)
}

/** Formats a remaining time. Rounded up, so that it is 0 only when nothing remains. */
export function left(ms: number): string {
  return span(Math.ceil(Math.max(0, ms) / 1000) * 1000)
}

/** Formats a configured duration, such as a TTL, without rounding. */
export function length(ms: number): string {
  return ms < 60_000 && ms % 1000 !== 0 ? `${ms} ms` : span(ms)
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** Formats the time of day of an event, in the time zone of the browser. */
export function timeOfDay(epochMs: number): string {
  const date = new Date(epochMs)
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}
