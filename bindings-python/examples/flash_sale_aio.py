"""Ten items, many buyers: a FastAPI application whose workers sell under one lock, on asyncio.

    pip install fastapi uvicorn
    echo 10 > stock.txt
    STANCHION_URL=redis://localhost STOCK=stock.txt uvicorn --workers 4 flash_sale_aio:app
    curl -X POST http://localhost:8000/buy

Without a server: STANCHION_URL=sqlite:sale.db.
"""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import JSONResponse

import stanchion.aio

stock = Path(os.environ["STOCK"])


@asynccontextmanager
async def lifespan(app):
    async with stanchion.aio.connect() as app.state.client:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/buy")
async def buy():
    async with app.state.client.lock("flash-sale").hold(wait=30) as lease:
        left = int(stock.read_text())
        if left == 0:
            return JSONResponse({"sold": False}, 409)
        await asyncio.sleep(0.01)  # Without the lock, others would now sell the same item.
        # A database would refuse a write whose fence is smaller than one that it has seen.
        stock.write_text(str(left - 1))
        return {"sold": True, "fence": lease.fence}
