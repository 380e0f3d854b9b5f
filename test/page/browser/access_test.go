package browser

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestLogsInByALink works once for a link, and nothing is served without a session.
func TestLogsInByALink(t *testing.T) {
	link := startFixture(t, 20, "-login")
	p := startChromium(t)
	p.do("open the link", chromedp.Navigate(link))
	p.see(".segments", "All 20")
	p.do("reload", chromedp.Reload())
	p.see(".segments", "All 20")
	for _, url := range []string{link, origin(link) + "/ui/", origin(link) + "/ui/api/history", origin(link) + "/containerLogs/shop/api-016/app"} {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			t.Errorf("%s without a session: %s", url, response.Status)
		}
	}
}
