// A person at a browser: goes through the provider's pages, enters the code, logs in, and agrees; or refuses. Prints what
// the last page says, or where the provider sends the browser when that is elsewhere.
//
//     node approve.mjs ADDRESS NAME [no]
const [address, name, answer = 'yes'] = process.argv.slice(2);
const jar = new Map();

async function visit(url, form) {
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET',
    body: form ? new URLSearchParams(form) : undefined,
    headers: { cookie: [...jar].map(([key, value]) => `${key}=${value}`).join('; ') },
    redirect: 'manual',
  });
  for (const line of response.headers.getSetCookie()) {
    const [pair] = line.split(';');
    const at = pair.indexOf('=');
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    if (value === '') jar.delete(key);
    else jar.set(key, value);
  }
  const text = await response.text();
  const next = response.headers.get('location');
  const to = next && new URL(next, url);
  if (to && to.origin !== new URL(address).origin) return { url, status: response.status, text: to.href };
  if (to) return visit(to.href);
  return { url, status: response.status, text };
}

// The form of a page, with what is already filled in.
function formOf(page) {
  const form = page.text.match(/<form[^>]*>[\s\S]*?<\/form>/i)?.[0];
  if (!form) return undefined;
  const action = form.match(/action="([^"]*)"/i)?.[1] ?? page.url;
  const fields = {};
  for (const [input] of form.matchAll(/<input[^>]*>/gi)) {
    const key = input.match(/name="([^"]*)"/i)?.[1];
    if (key) fields[key] = input.match(/value="([^"]*)"/i)?.[1] ?? '';
  }
  return { action: new URL(action.replaceAll('&amp;', '&'), page.url).href, fields };
}

let page = await visit(address);
for (let step = 0; step < 8; step += 1) {
  const form = formOf(page);
  if (!form) break;
  const { fields } = form;
  if ('login' in fields) Object.assign(fields, { login: name, password: 'any' });
  if ('user_code' in fields && fields.xsrf) fields.confirm = 'yes';
  if (answer === 'no' && 'user_code' in fields) {
    delete fields.confirm;
    fields.abort = 'yes';
  }
  page = await visit(form.action, fields);
}
const said = page.text.replace(/<(style|script)[\s\S]*?<\/\1>/gi, '').replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim();
console.log(`${page.status} ${said}`);
