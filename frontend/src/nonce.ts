/** What the page's policy lets styles carry that are made here; see eventhub/web/console.py. */
export function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
}
