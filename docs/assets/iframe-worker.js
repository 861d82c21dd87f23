// Search from a disk: a browser starts no worker for a page of file://, so the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source === this.inside) this.pass(event.data);
      });
      this.ready = new Promise((done) => {
        this.inside.loaded = done;
      });
      const page = this.inside.document;
      page.open();
      page.write(
        "<script>" +
          "var postMessage = (data) => parent.postMessage(data, '*');" +
          "var importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {" +
          "  const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "  document.body.append(script); })), Promise.resolve());" +
          "</" + "script><body><script src='" + url + "' onload='loaded()'></" + "script></body>",
      );
      page.close();
    }

    pass(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
