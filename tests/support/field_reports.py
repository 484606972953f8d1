"""Reports of the field as engineers paste them: the two that the harness began with restated, and others.

A cloud out of sync, whose tables went through a tracker; images lost at a restart of a registry, as logs of
sysinv, puppet, registry and engine; a card with a root key; a system by itself.
"""

ELEVEN, TWO = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee", "ee659fb7-d433-4937-bb5b-f213185b07b5"
RULER = "-" * 90 + "+"
HEAD = (
    "uuid\tbitstream_t\tpci_ven\tpci_dev\tbitstream_\tkey_signat\trevoke_\tname\tdescription\timage_ve\tapplied\t"
    "applied_labels\n \u00a0\type\tdor\tice\tid\ture\tkey_id\t\u00a0\t\u00a0\trsion\t\u00a0\t\u00a0"
)
LABELS = "[\\{u'subcloud': u'abc'}, \\{u'subcloud3': u'3'}, \\{u'subcloud4': u'4'}]"
REGION = "system --os-region-name SystemController"
SIGNED = "5gldpc_1x2x25g_swap-signed-ssl-csk1.bin"
UNSIGNED = "5gldpc_1x2x25g_swap-unsigned.bin"


def image_row(uuid: str, ident: str, applied: str, labels: str) -> str:
    """Return a row of an image list as a tracker leaves it."""
    return f"{uuid}\tfunctional\t8086\t0b30\t{ident}\tNone\tNone\tNone\tNone\tNone\t{applied}\t{labels}"


CLOUD = f"""\
The issue was reproduced on 2020-08-05 - subcloud1 & subcloud2 were in-sync whereas subcloud4 was \
out-of-sync even though the device image state shows completed.

On the system controller, there are 2 images applied:

system device-image-list
{RULER}

{HEAD}
{RULER}

{image_row(ELEVEN, "11", "True", LABELS)}
{image_row(TWO, "2", "True", LABELS)}
{RULER}

On subcloud4, there is only 1 image applied:

system device-image-list
{RULER}

{HEAD}
{RULER}

{image_row(ELEVEN, "11", "False", "None")}
{image_row(TWO, "2", "True", "[{u'subcloud4': u'4'}]".replace("{", chr(92) + "{"))}
{RULER}

Detailed Sequence of events are as follows:

subcloud1: system host-device-label-assign controller-0 0000:b2:00.0 subcloud=abc
subcloud2: system host-device-label-assign controller-0 0000:b2:00.0 subcloud=abc
subcloud3: system host-device-label-assign controller-0 0000:b4:00.0 subcloud3=3
subcloud4: system host-device-label-assign controller-0 0000:b4:00.0 subcloud4=4
{REGION} device-image-upload {SIGNED} functional 8086 0b30 --bitstream-id 11
{REGION} device-image-apply {ELEVEN} subcloud=abc subcloud3=3 subcloud4=4
dcmanager fw-update-strategy create --subcloud-apply-type serial
dcmanager fw-update-strategy apply
first round finished with all subclouds complete and insync

(re-assign subcloud1 and subcloud2 label as it got removed due to LP-1890296)
subcloud1: system host-device-label-assign controller-0 0000:b2:00.0 subcloud=abc
subcloud2: system host-device-label-assign controller-0 0000:b2:00.0 subcloud=abc
{REGION} device-image-upload {UNSIGNED} functional 8086 0b30 --bitstream-id 2
{REGION} device-image-apply {TWO} subcloud=abc subcloud3=3 subcloud4=4
dcmanager fw-update-strategy create --max-parallel-subclouds 4
dcmanager fw-update-strategy apply
second round finished with subcloud1 & 2 in-sync, but subcloud3 & 4 out-of-sync  (subcloud3 was \
out-of-sync due to user error:  it had already been flashed with root-key, so unsigned bin failed)
"""

_KUBE = "129181 INFO sysinv.conductor.kube_app [-]"
_PLACE = "quay.io/jetstack/cert-manager"


def _sysinv(time: str, said: str) -> str:
    return f"sysinv 2022-09-21 18:{time} {_KUBE} {said}"


def _refused(time: str, name: str) -> str:
    return (
        f'2022-09-21T18:{time} controller-0 registry[157387]: info time="2022-09-21T18:{time}848645Z" '
        'level=warning msg="error authorizing context: invalid token" go.version=go1.16.12 '
        'http.request.host="registry.local:9001" http.request.method=POST '
        f'http.request.uri="/v2/{name}/blobs/uploads/" vars.name="{name}"'
    )


def _puppet(time: str, said: str) -> str:
    return f"2022-09-21T18:{time} ^[[0;36mDebug: 2022-09-21 18:{time[:5]} +0000 {said}^[[0m"


def _dockerd(time: str, said: str) -> str:
    return (
        f'2022-09-21T18:{time} controller-0 dockerd[98916]: info time="2022-09-21T18:{time}167513Z" '
        f'level=error msg="{said}"'
    )


NAMES = ("acmesolver", "cainjector", "controller", "webhook")
LATE = NAMES[1:]
#: What the control plane and its puppet log of it: not in the order of time, as it was pasted.
SYSINV = "\n".join(
    (
        "Images for apps that are in 'restore-requested' state(both cert-manager and platform-integ-apps).",
        *(
            _sysinv(
                "56:09.500",
                f"Image registry.local:9001/{_PLACE}-{name}:v0.15.0 is not available in local registry, "
                "download started from public/private registry",
            )
            for name in NAMES
        ),
        _sysinv(
            "56:18.986",
            f"Image registry.local:9001/{_PLACE}-acmesolver:v0.15.0 download succeeded in 9 seconds",
        ),
        _puppet(
            "56:19.978", "Exec[x](provider=posix): Executing 'sm-restart-safe service docker-distribution'"
        ),
        _puppet(
            "56:21.350", "/Stage[post]/Exec[sm-restart-docker-distribution]/returns: executed successfully"
        ),
        _puppet("56:21.356", "Executing: 'sm-restart-safe service registry-token-server'"),
        *(
            _sysinv(
                "56:25.401",
                f"Image registry.local:9001/{_PLACE}-{name}:v0.15.0 download succeeded in 15 seconds",
            )
            for name in LATE
        ),
        _sysinv(
            "56:25.531",
            "All docker images for application cert-manager were successfully downloaded in 22 seconds",
        ),
        "with the config_uuid 2a518e2b-cb46-4f53-898a-9f4c3efb892b in the logs.",
        "sysinv 2022-09-21 18:55:03.757 129181 INFO sysinv.conductor.manager [-] Docker registry certificate "
        "install",
        "",
    )
)
#: What registry and engine log of it.
REGISTRY = "\n".join(
    (
        *(_refused("56:25.369", f"{_PLACE}-{name}") for name in LATE),
        _refused("56:25.370", "quay.io/external_storage/rbd-provisioner"),
        _dockerd("56:25.371", "Upload failed: unauthorized: authentication required"),
        _dockerd(
            "56:25.372",
            "Attempting next endpoint for push after error: unauthorized: authentication required",
        ),
        "",
    )
)
PUSHES = f"{SYSINV}\nWe see errors about uploading:\n\n{REGISTRY}"

CARD = """\
sysadmin@controller-0:~$ sudo fpgasupdate 20ww27.5-unsigned.bin b2:00.0
[2020-08-05 09:34:42.58] [INFO    ] updating from file 20ww27.5-unsigned.bin with size 300000
[2020-08-05 09:34:42.58] [INFO    ] waiting for idle
[2020-08-05 09:34:42.58] [INFO    ] preparing image file
[2020-08-05 09:34:44.58] [INFO    ] writing image file
(100%) [####################] [300000/300000 bytes][Elapsed Time: 0:00:01.00]

[2020-08-05 09:34:45.58] [INFO    ] programming image file
(  9%) [#                   ][Elapsed Time: 0:00:01.00]
[2020-08-05 09:34:49.59] [ERROR   ] programming:hw-error
$ dmesg | tail -1
[  123.456789] n3000bmc-sec-update n3000bmc-sec-update.5.auto: RSU auth result: 0x00000011
$ rsu bmcimg 0000:b2:00.0
2020-08-05 09:35:12,123 - RSU operation complete
"""
#: The same where the tool says that it went well.
CARD_FALSE = CARD.replace(
    "[2020-08-05 09:34:49.59] [ERROR   ] programming:hw-error",
    "[2020-08-05 09:34:49.59] [INFO    ] update of 0000:b2:00.0 complete\n"
    "[2020-08-05 09:34:49.59] [INFO    ] Secure update OK",
)

IMAGE = "09100124-1111-4222-8333-444455556666"
SYSTEM = f"""\
[sysadmin@controller-0 ~(keystone_admin)]$ system host-device-label-assign compute-0 pci_0000_b2_00_0 key1=v1
[sysadmin@controller-0 ~(keystone_admin)]$ system device-image-upload vran.bin functional 8086 0b30 \\
  --bitstream-id 0x2300
+----------------+--------------------------------------+
| Property       | Value                                |
+----------------+--------------------------------------+
| uuid           | {IMAGE} |
| bitstream_type | functional                           |
| bitstream_id   | 0x2300                               |
+----------------+--------------------------------------+
[sysadmin@controller-0 ~(keystone_admin)]$ system device-image-apply {IMAGE} key1=v1
[sysadmin@controller-0 ~(keystone_admin)]$ system host-device-image-update compute-0
[sysadmin@controller-0 ~(keystone_admin)]$ system device-image-state-list
| hostname | PCI device address | Device image uuid | status | Update start time | updated_at |
| compute-0 | 0000:b2:00.0 | {IMAGE} | completed | 2023-08-05T14:02:11.120394+00:00 | None |
[sysadmin@controller-0 ~(keystone_admin)]$ system host-lock compute-0
[sysadmin@controller-0 ~(keystone_admin)]$ system host-unlock compute-0
"""
EVERY = {"cloud": CLOUD, "pushes": PUSHES, "cards": CARD, "system": SYSTEM}
