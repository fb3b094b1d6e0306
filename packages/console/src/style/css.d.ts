// What Vite makes of them: part of the page's one style.
declare module '*.css'
