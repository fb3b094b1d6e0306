export { NO_PAINT, type Paint, terminalPicture } from './terminal.js'
export { htmlPage } from './html/page.js'
export { svgImage } from './html/svg.js'
