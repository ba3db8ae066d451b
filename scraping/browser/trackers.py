"""Hosts that no score ever comes from: those who watch people, sell to them, or draw maps and play films for them.

A host is meant with everything below it. A source that needs one of these names it among its own hosts.
"""

from __future__ import annotations

WATCHERS = """
    2mdn.net 33across.com 3lift.com adcolony.com addthis.com adform.net adjust.com adnxs.com adobedtm.com adroll.com
    ads-twitter.com adsafeprotected.com adservice.google.com adsrvr.org agkn.com amazon-adsystem.com amplitude.com
    analytics.google.com analytics.tiktok.com app-measurement.com appcenter.ms appsflyer.com bat.bing.com
    bidswitch.net bluekai.com branch.io bugsnag.com c.bing.com casalemedia.com chartbeat.com chartbeat.net
    clarity.ms clevertap-prod.com clicktale.net confiant-integrations.net connect.facebook.net cookiebot.com
    cookielaw.org criteo.com criteo.net crwdcntrl.net demdex.net disqus.com doubleclick.net doubleverify.com
    everesttech.net exelator.com flashtalking.com fullstory.com fundingchoicesmessages.google.com
    google-analytics.com googleadservices.com googlesyndication.com googletagmanager.com googletagservices.com
    gumgum.com heapanalytics.com hotjar.com hotjar.io hs-analytics.net id5-sync.com imrworldwide.com intercom.io
    ipredictive.com kissmetrics.com krxd.net liadm.com licdn.com logrocket.com lr-ingest.io luckyorange.com
    media.net mgid.com mixpanel.com moatads.com moengage.com mouseflow.com newrelic.com nr-data.net omtrdc.net
    onesignal.com onetrust.com openx.net optimizely.com outbrain.com parsely.com permutive.com pinimg.com
    plausible.io pubmatic.com quantcast.com quantserve.com revcontent.com rlcdn.com rubiconproject.com sc-static.net
    scorecardresearch.com segment.com segment.io sentry-cdn.com sentry.io serving-sys.com sharethis.com
    sharethrough.com smartadserver.com smartlook.com snapchat.com spotxchange.com stackadapt.com taboola.com
    tapad.com teads.tv tealiumiq.com tiqcdn.com tremorhub.com turn.com unrulymedia.com usabilla.com vwo.com
    yieldmo.com zemanta.com zeotap.com
"""
MAPS_AND_FILMS = """
    basemaps.cartocdn.com brightcove.com brightcove.net cdn.jwplayer.com cloudflarestream.com dailymotion.com
    dmcdn.net googlevideo.com jwpcdn.com jwplatform.com jwpltx.com khms.googleapis.com mapbox.com maps.google.com
    maps.googleapis.com maps.gstatic.com openstreetmap.org player.vimeo.com tile.openstreetmap.org tiles.mapbox.com
    twitch.tv vimeo.com vimeocdn.com virtualearth.net youtube-nocookie.com youtube.com ytimg.com
"""
HOSTS = frozenset((WATCHERS + MAPS_AND_FILMS).split())


def is_known(host: str) -> bool:
    """Is this host, or one that it lies below, on the list?"""
    labels = host.lower().rstrip(".").split(".")
    return any(".".join(labels[start:]) in HOSTS for start in range(len(labels) - 1))
