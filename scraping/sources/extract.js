// Extracts the values of a plan from the open page, in one call. Returns the JSON that extract.py describes.
// Never throws: a selector that a browser does not know finds nothing.
(plan) => {
  const tidy = (text) => (text || "").replace(/[ \t\n\r\f\v\u00a0]+/g, " ").replace(/^ | $/g, "");
  const nodes = (root, query) => {
    try {
      if (!query.is_xpath) {
        return Array.from(root.querySelectorAll(root === document ? query.text : ":scope " + query.text));
      }
      const type = XPathResult.ORDERED_NODE_SNAPSHOT_TYPE;
      const found = document.evaluate(query.text, root, null, type, null);
      return Array.from({ length: found.snapshotLength }, (_, place) => found.snapshotItem(place));
    } catch (error) {
      return [];
    }
  };
  const values = (root, query) => {
    const all = nodes(root, query);
    if (!query.attribute) return all.map((node) => tidy(node.nodeType === 2 ? node.value : node.textContent));
    return all.filter((node) => node.hasAttribute && node.hasAttribute(query.attribute))
      .map((node) => tidy(node.getAttribute(query.attribute)));
  };
  const first = (queries, read) => {
    let empty = null;
    for (let by = 0; by < queries.length; by += 1) {
      const found = read(queries[by]);
      if (found.some((value) => value)) return { by, values: found.map((value) => value || "") };
      if (empty === null && found.some((value) => value !== null)) {
        empty = { by, values: found.map((value) => value || "") };
      }
    }
    return empty;
  };
  const table = (rows) => {
    for (let by = 0; by < rows.queries.length; by += 1) {
      const found = nodes(document, rows.queries[by]).filter((node) => node.nodeType === 1);
      if (!found.length) continue;
      const cells = {};
      for (const [name, queries] of Object.entries(rows.cells)) {
        cells[name] = first(queries, (query) => found.map((row) => {
          const inside = values(row, query);
          return inside.length ? inside[0] : null;
        }));
      }
      return { by, count: found.length, cells };
    }
    return null;
  };
  const answer = { fields: {}, rows: {} };
  for (const [name, queries] of Object.entries(plan.fields)) {
    answer.fields[name] = first(queries, (query) => values(document, query));
  }
  for (const [name, rows] of Object.entries(plan.rows)) answer.rows[name] = table(rows);
  return answer;
}
