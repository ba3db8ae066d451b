(limitsText) => {
  const { maxBytes, redirect } = JSON.parse(limitsText);
  const withoutCookies = new Set(); // origins that refuse requests with cookies from other origins (CORS)
  const arrived = [];
  let wake = () => {};

  const bodyOf = async (response) => {
    if (!response.body) return "";
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = "", size = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.length;
      if (size > maxBytes) {
        reader.cancel().catch(() => {});
        throw new RangeError();
      }
      text += decoder.decode(part.value, { stream: true });
    }
    return text + decoder.decode();
  };

  const fetchWithCookies = async (url, options) => {
    const origin = new URL(url).origin;
    if (withoutCookies.has(origin)) return fetch(url, options);
    try {
      return await fetch(url, { ...options, credentials: "include" });
    } catch (error) {
      if (origin === location.origin || options.signal.aborted) throw error;
      const response = await fetch(url, options);
      if (response.ok) withoutCookies.add(origin);
      return response;
    }
  };

  const ask = async ({ number, url, method, headers, body, referrer, milliseconds }) => {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), milliseconds);
    const options = { method, headers, body, redirect, cache: "no-store", signal: stop.signal };
    if (referrer) options.referrer = referrer;
    const result = { number };
    try {
      const response = await fetchWithCookies(url, options);
      result.status = response.status;
      result.headers = Object.fromEntries(response.headers);
      result.body = await bodyOf(response);
    } catch (error) {
      const isTooLarge = error instanceof RangeError;
      result.error = isTooLarge ? "size" : stop.signal.aborted ? "time" : String(error.message);
    } finally {
      clearTimeout(timer);
    }
    arrived.push(result);
    wake();
  };

  // Returns the responses that have arrived: at least one, if there is any, and together not much above the limit.
  const taken = () => {
    let size = 0, number = 0;
    while (number < arrived.length && size < maxBytes) size += (arrived[number++].body ?? "").length;
    return arrived.splice(0, number);
  };

  // Begins requests, and returns responses; waits for one a moment if there is none.
  window[Symbol.for("exchange")] = async (argument) => {
    const { requests, waitMs } = JSON.parse(argument);
    requests.forEach(ask);
    if (!arrived.length) {
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, waitMs);
      });
      wake = () => {};
    }
    return JSON.stringify(taken());
  };
}
