/* What can be seen to be wrong with a page without looking at it. This runs inside of the page. */

/** Elements that stick out of the page at its right. */
function overflow() {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  return [...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > width + 1)
    .map((one) => `${one.tagName}.${one.className} ends at ${one.getBoundingClientRect().right}, not ${width}`)
}

/** Controls without a name for screen readers. */
function nameless() {
  return [...document.querySelectorAll('a, button, input, [role="img"], table, nav, dialog')]
    .filter((one) => {
      const labels = one instanceof HTMLInputElement ? one.labels.length : 0
      const named = one.getAttribute('aria-label') ?? one.getAttribute('aria-labelledby') ?? ''
      const own = one.tagName === 'TABLE' || one.tagName === 'NAV' ? '' : one.textContent.trim()
      return labels === 0 && named === '' && own === ''
    })
    .map((one) => one.outerHTML.slice(0, 120))
}

const CONTRAST_LEAST = 4.5

/** Text that is hard to read on what is behind it (WCAG 2, level AA for small text). */
function contrasts() {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1)
    context.fillStyle = color
    context.fillRect(0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data]
  }
  const luminance = (color) => {
    const [r, g, b] = color
      .slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const behind = (element) => {
    for (let one = element; one !== null; one = one.parentElement) {
      const color = rgba(getComputedStyle(one).backgroundColor)
      if (color[3] === 255) return color
    }
    return [255, 255, 255, 255]
  }
  const found = new Set()
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode() !== null) {
    const parent = texts.currentNode.parentElement
    const text = texts.currentNode.textContent.trim()
    if (text === '' || !parent.checkVisibility() || parent.closest('noscript, style, script')) continue
    const front = luminance(rgba(getComputedStyle(parent).color))
    const back = luminance(behind(parent))
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)
    if (ratio < CONTRAST_LEAST) found.add(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`)
  }
  return [...found]
}

/** All of it: what sticks out, what has no name, and what is hard to read. */
// oxlint-disable-next-line no-unused-vars
function findings() {
  return [...overflow(), ...nameless(), ...contrasts()]
}
