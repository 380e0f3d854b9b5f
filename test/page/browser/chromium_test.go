package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a wait may take on a busy machine.
const patience = 20 * time.Second

// tab is the page of a browser. What it reports as an error fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	allowed []string
}

// startChromium starts a browser that ends with the test and reaches loopback only.
func startChromium(t *testing.T) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v\nhack/install-deps.sh installs it", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(profile(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("hide-scrollbars", false), chromedp.Flag("ignore-certificate-errors", true), // Certificates are of the node's own CA.
		chromedp.WSURLReadTimeout(time.Minute),
	)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception in the page: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && !p.isAllowed(e.Entry.Text) {
				t.Errorf("error in the page: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	p.do("start chromium", log.Enable(), chromedp.EmulateViewport(1280, 800))
	return p
}

// profile returns a directory for the files of a browser. Its helper processes end after it, and may write meanwhile.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if err := os.RemoveAll(dir); err == nil || time.Now().After(deadline) {
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	return dir
}

// allow names errors that the test provokes.
func (p *tab) allow(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = texts
}

func (p *tab) isAllowed(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.allowed, func(part string) bool { return strings.Contains(text, part) })
}

// awaitPromise makes the value of an expression that of its promise.
func awaitPromise(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// do runs actions, which must succeed.
func (p *tab) do(what string, actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// see waits for an element that is visible and has the text.
func (p *tab) see(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("see %q in %s", text, selector), fmt.Sprintf(
		`[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.textContent.includes(%q))`, selector, text))
}

// until waits for an expression to be true. Errors pass: one document may be replaced by another.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var met bool
		if last = chromedp.Run(p.ctx, chromedp.Evaluate("Boolean("+expression+")", &met)); met {
			return
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
	var text string
	_ = chromedp.Run(p.ctx, chromedp.Evaluate("document.body.innerText", &text))
	p.t.Fatalf("%s: not so after %v (%v); the page shows:\n%s", what, patience, last, text)
}

// click clicks on the first visible element that has the text.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	p.see(selector, text)
	p.do("click on "+text, chromedp.Evaluate(fmt.Sprintf(
		`[...document.querySelectorAll(%q)].find((e) => e.checkVisibility() && e.textContent.includes(%q)).click()`, selector, text), nil))
}

// scheme sets what the system prefers: light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	p.do("set colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}

// key presses keys.
func (p *tab) key(keys ...string) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(strings.Join(keys, "")))
}

// shortcut presses a key that the page handles itself, and which writes nothing then.
func (p *tab) shortcut(key string) {
	p.t.Helper()
	p.do("press "+key, input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key))
}
