"""Ten items, many buyers: a Flask application whose workers sell under one lock.

    pip install flask gunicorn
    echo 10 > stock.txt
    STANCHION_URL=redis://localhost STOCK=stock.txt gunicorn --preload --workers 4 flash_sale:app
    curl -X POST http://localhost:8000/buy

The client is made before gunicorn forks its workers; each of them connects anew. Without a server:
STANCHION_URL=sqlite:sale.db.
"""

import os
import time
from pathlib import Path

from flask import Flask

import stanchion

app = Flask(__name__)
client = stanchion.connect()
stock = Path(os.environ["STOCK"])


@app.post("/buy")
def buy():
    with client.lock("flash-sale").hold(wait=30) as lease:
        left = int(stock.read_text())
        if left == 0:
            return {"sold": False}, 409
        time.sleep(0.01)  # Without the lock, others would now sell the same item.
        # A database would refuse a write whose fence is smaller than one that it has seen.
        stock.write_text(str(left - 1))
        return {"sold": True, "fence": lease.fence}
